"use strict";
const dialog = document.querySelector("dialog");

function element(name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
}

function show(node, row) {
  const body = dialog.querySelector("div");
  body.replaceChildren(element("h2", node.name));
  const id = element("div", [node.label, node.id].filter(Boolean).join(" · "));
  id.className = "id";
  body.append(id);
  if (node.rows) {
    if (node.about) {
      const about = element("div", node.about);
      about.className = "text";
      body.append(about);
    }
    const table = element("table");
    const head = element("tr");
    node.header.forEach((cell) => head.append(element("th", cell)));
    table.append(head);
    node.rows.forEach((cells, at) => {
      const line = element("tr");
      if (at === row) line.className = "row";
      cells.forEach((cell) => line.append(element("td", cell)));
      table.append(line);
    });
    body.append(table);
  } else {
    const text = element("div", node.text);
    text.className = "text";
    body.append(text);
  }
  dialog.showModal();
  body.parentElement.scrollTop = 0;
}

function rowOf(at) {
  return at.dataset.row === undefined ? -1 : Number(at.dataset.row);
}

dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

// Makes what a page draws answer to the pointer and the keyboard; `nodes` has the texts, by the numbers of `data-node`.
function wire(root, nodes) {
  root.querySelectorAll("[data-node]").forEach((at) => {
    at.addEventListener("click", () => show(nodes[at.dataset.node], rowOf(at)));
    at.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && at.tagName === "LI") show(nodes[at.dataset.node], rowOf(at));
    });
  });

  root.querySelectorAll("section").forEach((section) => {
    const picture = section.querySelector(".picture");
    if (!picture) return;
    const lines = [...picture.querySelectorAll("[data-from]")];
    const cards = [...picture.querySelectorAll(".card")];
    function focus(node) {
      const on = new Set([node]);
      lines.forEach((line) => {
        const ends = [line.dataset.from, line.dataset.to];
        const touched = ends.includes(node);
        line.classList.toggle("on", touched);
        if (touched) ends.forEach((end) => on.add(end));
      });
      cards.forEach((card) => card.classList.toggle("on", on.has(card.dataset.node)));
      picture.classList.toggle("focus", cards.some((card) => card.dataset.node === node));
    }
    function blur() {
      picture.classList.remove("focus");
      [...lines, ...cards].forEach((one) => one.classList.remove("on"));
    }
    section.querySelectorAll("[data-node]").forEach((at) => {
      at.addEventListener("mouseenter", () => focus(at.dataset.node));
      at.addEventListener("mouseleave", blur);
      at.addEventListener("focus", () => focus(at.dataset.node));
      at.addEventListener("blur", blur);
    });
  });

  // On a phone one list is shown at a time.
  root.querySelectorAll(".tabs button").forEach((tab) => {
    tab.addEventListener("click", () => {
      const tabs = tab.parentElement;
      tabs.nextElementSibling.dataset.shown = tab.dataset.list;
      tabs.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", one === tab));
    });
  });

  const reach = root.querySelector(".picture.reach");
  const drawn = reach ? [...reach.querySelectorAll(".card")] : [];

  root.querySelectorAll("[data-step]").forEach((step) => {
    const numbers = new Set(step.dataset.nodes.split(" "));
    function focus() {
      drawn.forEach((card) => card.classList.toggle("on", numbers.has(card.dataset.node)));
      if (reach) reach.classList.toggle("focus", drawn.some((card) => card.classList.contains("on")));
    }
    function blur() {
      if (reach) reach.classList.remove("focus");
      drawn.forEach((card) => card.classList.remove("on"));
    }
    step.addEventListener("mouseenter", focus);
    step.addEventListener("mouseleave", blur);
    step.addEventListener("focus", focus);
    step.addEventListener("blur", blur);
    step.addEventListener("click", () => {
      const at = root.querySelector(`[id="${step.dataset.step}"]`);
      at.closest("details").open = true;
      at.scrollIntoView({ block: "center" });
      at.focus({ preventScroll: true });
    });
  });
}
