// Filters submissions and boards. Without this script the page shows all of them.
const box = document.getElementById("filters");
const items = [...document.querySelectorAll("[data-set]")];
const texts = new Map(items.map((item) => [item, item.textContent.toLowerCase()]));
function apply() {
  const words = box.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const choices = [...box.querySelectorAll("select")].filter((select) => select.value);
  for (const item of items) {
    const chosen = choices.every((select) => item.dataset[select.name].split(" ").includes(select.value));
    item.hidden = !chosen || !words.every((word) => texts.get(item).includes(word));
  }
  const entries = items.filter((item) => item.localName === "li");
  const count = entries.filter((item) => !item.hidden).length;
  box.querySelector("[role=status]").textContent = `${count} of ${entries.length} submissions`;
}
box.addEventListener("input", apply);
box.hidden = false;
apply();
