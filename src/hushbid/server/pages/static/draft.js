/**
 * A draft's form, as one types: it is kept on the server a moment after the last change, the forecast follows, and two
 * sliders stand for two fields. All of it works without this script: whatever a button sends is kept, too.
 */
import { number, readNumber } from "./numbers.js";

const form = document.getElementById("draft");
const panel = document.getElementById("preview");
const note = document.getElementById("preview-note");
const kept = document.getElementById("kept");
const { group } = document.documentElement.dataset;
const AGAIN = 15_000;
let unkept = false; // whether anything was typed that the server does not have
let sending = false;
let keepTimer = 0;
let lookTimer = 0;
let asking = null;
let keeping = null;

function content() {
  const data = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string") data.append(name, value);
  return data;
}

/** A program's answer, or the status of a refusal. */
async function post(address, options) {
  const answer = await fetch(address, { method: "POST", headers: { Accept: "application/json" }, body: content(), ...options });
  if (!answer.ok) throw Object.assign(new Error("refused"), { status: answer.status });
  return answer.json();
}

// -- keeping -----------------------------------------------------------------------------------------------------------

async function keep() {
  clearTimeout(keepTimer);
  if (sending) return;
  if (keeping) { // one at a time: what was sent first must not arrive last
    keepTimer = setTimeout(keep, 300);
    return;
  }
  keeping = new AbortController();
  unkept = false; // what is typed from now on comes later
  kept.textContent = form.dataset.saving;
  try {
    const answer = await post(form.dataset.keep, { signal: keeping.signal });
    if (answer.kept) kept.textContent = form.dataset.kept.replace("{time}", answer.kept);
    if (answer.kept && form.dataset.new) history.replaceState(null, "", answer.here);
  } catch (error) {
    if (error.name === "AbortError") return;
    unkept = true;
    kept.textContent = error.status === 401 || error.status === 403 ? form.dataset.out : form.dataset.failed;
    keepTimer = setTimeout(keep, AGAIN);
  } finally {
    keeping = null;
  }
}

form.addEventListener("input", (event) => {
  if (event.target.type === "range") return;
  unkept = true;
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keep, 1200);
  clearTimeout(lookTimer);
  lookTimer = setTimeout(look, 800);
});
form.addEventListener("submit", () => {
  sending = true;
  clearTimeout(keepTimer);
  keeping?.abort();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // come back to: the server has what was kept since
});
addEventListener("beforeunload", (event) => {
  if (unkept && !sending) event.preventDefault();
});

// -- the forecast ------------------------------------------------------------------------------------------------------

function paragraphs(place, texts) {
  place.replaceChildren(...texts.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
}

function pairs(place, rows) {
  place.replaceChildren(
    ...rows.map(([name, error]) => {
      const row = document.createElement("div");
      row.append(
        Object.assign(document.createElement("dt"), { textContent: name }),
        Object.assign(document.createElement("dd"), { textContent: error }),
      );
      return row;
    }),
  );
}

async function look() {
  asking?.abort();
  asking = new AbortController();
  note.textContent = panel.dataset.busy;
  panel.setAttribute("aria-busy", "true");
  try {
    const { problem, sentences, errors, texts } = await post("/campaigns/preview", { signal: asking.signal });
    paragraphs(document.getElementById("preview-words"), sentences);
    pairs(document.getElementById("preview-errors"), errors);
    for (const place of panel.querySelectorAll("[data-shows]")) place.textContent = texts[place.dataset.shows] ?? "–";
    document.getElementById("preview-more").hidden = texts.expected === undefined;
    document.getElementById("preview-spending-limit").textContent = texts.spending_limit ?? "";
    note.textContent = problem ?? texts.basis ?? "";
  } catch (error) {
    if (error.name === "AbortError") return;
    note.textContent = panel.dataset.failed;
  }
  panel.removeAttribute("aria-busy");
}

// -- two prices --------------------------------------------------------------------------------------------------------

const TENTH = 1.2815515655446004;
const DECADES = 5;
const STEPS = 1000;
const WIDTH = 400;
const row = form.querySelector(".sliders");
const decimals = Number(row.dataset.decimals) || 0;
const ends = ["low", "high"].map((name) => ({
  field: document.getElementById(`price_${name}`),
  slider: document.getElementById(`slider-${name}`),
  mark: form.querySelector(`.price-mark[data-price="${name}"]`),
}));

const placeOf = (price) => Math.min(Math.max((Math.log10(price) + decimals) / DECADES, 0), 1);
const priceAt = (place) => Number((10 ** (place * DECADES - decimals)).toPrecision(2));

/** Draw the bell between the two marks, as the server does. */
function draw() {
  const prices = ends.map(({ field }) => readNumber(field.value));
  if (prices.some((price) => !(price > 0)) || prices[0] >= prices[1]) return;
  const at = prices.map((price) => WIDTH * (0.05 + 0.9 * placeOf(price)));
  const middle = (at[0] + at[1]) / 2;
  const spread = Math.max((at[1] - at[0]) / (2 * TENTH), 1);
  const points = Array.from({ length: 71 }, (_, k) => (k - 35) / 10).map(
    (z) => `${(middle + spread * z).toFixed(1)} ${(80 - 60 * Math.exp(-0.5 * z * z)).toFixed(1)}`,
  );
  form.querySelector(".price-bell").setAttribute("d", `M${points.join("L")}`);
  ends.forEach(({ slider, mark }, k) => {
    mark.setAttribute("transform", `translate(${at[k].toFixed(1)} 0)`);
    slider.value = Math.round(STEPS * placeOf(prices[k]));
    slider.setAttribute("aria-valuetext", ends[k].field.value);
  });
}

ends.forEach(({ field, slider }) => {
  slider.addEventListener("input", () => {
    field.value = number(priceAt(slider.value / STEPS), 2).replaceAll(group, "");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", draw);
});
row.hidden = false;
draw();
