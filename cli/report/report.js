// SPDX-License-Identifier: Apache-2.0
//
// report.js - sorting by a click on a column's head, a point's row beside the pointer, phases shown and hidden. The page is whole
// without it. Invariant: nothing of the page becomes markup, as text is only ever set as textContent.
"use strict";

function cellValue(row, column) {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
}

function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
}

// Numbers begin with the largest, texts with the first.
function sortBy(table, column) {
    const head = table.tHead.rows[0].cells[column], body = table.tBodies[0], before = head.getAttribute("aria-sort");
    const first = head.classList.contains("n") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = before === first ? other : first, sign = order === "ascending" ? 1 : -1;
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    body.append(...Array.from(body.rows).sort((a, b) => sign * compare(cellValue(a, column), cellValue(b, column))));
}

for (const table of document.querySelectorAll("table.sortable"))
    Array.from(table.tHead.rows[0].cells).forEach((cell, column) =>
        cell.firstElementChild.addEventListener("click", () => sortBy(table, column)));

const tip = document.getElementById("tip");

function addLine(list, name, value) {
    list.appendChild(document.createElement("dt")).textContent = name;
    list.appendChild(document.createElement("dd")).textContent = value;
}

function fillTip(row) {
    const heads = row.closest("table").tHead.rows[0].cells, list = document.createElement("dl");
    const title = document.createElement("strong");
    title.textContent = row.cells[0].textContent + " · " + row.closest("section").querySelector("h2").textContent;
    for (let i = 1; i < row.cells.length; i++) addLine(list, heads[i].textContent, row.cells[i].textContent);
    tip.replaceChildren(title, list);
}

// Beside the point, on the side where there is room.
function placeTip(point) {
    const at = point.getBoundingClientRect(), width = tip.offsetWidth, height = tip.offsetHeight, view = document.documentElement;
    const left = at.right + 10 + width > view.clientWidth ? at.left - 10 - width : at.right + 10;
    const top = Math.min(Math.max(8, at.top - height / 3), view.clientHeight - height - 8);
    tip.style.left = Math.max(8, left) + window.scrollX + "px";
    tip.style.top = top + window.scrollY + "px";
}

function show(point, row) {
    row.classList.add("lit");
    point.classList.add("lit");
    fillTip(row);
    tip.hidden = false;
    placeTip(point);
}

function hide(point, row) {
    row.classList.remove("lit");
    point.classList.remove("lit");
    tip.hidden = true;
}

for (const point of document.querySelectorAll("circle[data-row]")) {
    const row = document.getElementById(point.dataset.row), title = point.querySelector("title");
    point.setAttribute("aria-label", title.textContent);
    title.remove();
    for (const event of ["mouseenter", "focus"]) point.addEventListener(event, () => show(point, row));
    for (const event of ["mouseleave", "blur"]) point.addEventListener(event, () => hide(point, row));
    point.addEventListener("click", () => row.scrollIntoView({block: "center"}));
    row.addEventListener("mouseenter", () => point.classList.add("lit"));
    row.addEventListener("mouseleave", () => point.classList.remove("lit"));
}

for (const box of document.querySelectorAll("input[data-phase]"))
    box.addEventListener("change", () => {
        for (const part of document.querySelectorAll(`g[data-phase="${box.dataset.phase}"], section[data-phase="${box.dataset.phase}"]`))
            part.classList.toggle("off", !box.checked);
    });

document.documentElement.dataset.ready = "yes";
