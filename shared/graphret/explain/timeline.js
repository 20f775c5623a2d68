const reach = document.querySelector(".picture.reach");
const drawn = reach ? [...reach.querySelectorAll(".card")] : [];

document.querySelectorAll("[data-step]").forEach((step) => {
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
    const at = document.getElementById(step.dataset.step);
    at.closest("details").open = true;
    at.scrollIntoView({ block: "center" });
    at.focus({ preventScroll: true });
  });
});
