"use strict";
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const index = heading.cellIndex;
    const body = heading.closest("table").tBodies[0];
    const sorted = heading.getAttribute("aria-sort");
    const numeric = heading.classList.contains("right");
    const direction = sorted ? (sorted === "ascending" ? -1 : 1) : numeric && index > 0 ? -1 : 1;
    const key = (row) => row.cells[index].dataset.order ?? row.cells[index].textContent.trim();
    const compare = (a, b) => {
      const x = Number(key(a)), y = Number(key(b));
      if (Number.isNaN(x) || Number.isNaN(y)) {
        const missing = Number.isNaN(x) - Number.isNaN(y);
        return numeric ? missing : direction * key(a).localeCompare(key(b));
      }
      return direction * (x - y);
    };
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    body.append(...[...body.rows].sort(compare));
  });
}
