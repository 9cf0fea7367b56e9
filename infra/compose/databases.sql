-- Run once, when PostgreSQL makes its data. The database "mesa" is there already; the store makes its extension and tables in it.
CREATE DATABASE dagster;
CREATE DATABASE mlflow;
\connect mesa
CREATE EXTENSION IF NOT EXISTS vector;
