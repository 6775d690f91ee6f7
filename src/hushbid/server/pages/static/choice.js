/**
 * The choice: a slider beside the field, and what an answer means, at once. The numbers are the server's menu, read in
 * the same way: loss, chance and rent straight between its points (hushbid.server.pages.choice). Nothing is sent until the form is, and
 * before that this browser keeps what she was shown, beyond which it delivers nothing later on.
 */
import { amount, fixed, outOf100, percent, readNumber } from "./numbers.js";
import { agree, PrivatizeError } from "./privatize.js";
import { agreeToSurvey } from "./survey.js";

const form = document.getElementById("choice");
const field = form.elements.namedItem("price");
const slider = document.getElementById("slider");
const panel = document.getElementById("means");
const { menu, step, largest, currency, decimals } = {
  menu: JSON.parse(form.dataset.menu),
  step: Number(form.dataset.step),
  largest: form.dataset.largest === "" ? Infinity : Number(form.dataset.largest),
  currency: form.dataset.currency,
  decimals: Number(form.dataset.decimals),
};
const lowest = menu.bids[0] * step;
const highest = menu.bids[menu.usual[0] - 1] * step; // that the buyer expects; the menu goes on
const rents = menu.payment.map((payment, at) => payment - menu.bids[at] * menu.loss[at]);
const scale = 1000;
const alike = 2; // so many points of the menu apart say the same

function between(bid, values) {
  const { bids } = menu;
  if (bid <= bids[0]) return values[0];
  const next = bids.findIndex((one) => one >= bid);
  if (next < 0) return values[values.length - 1];
  const width = bids[next] - bids[next - 1];
  const share = width > 0 ? (bid - bids[next - 1]) / width : 1;
  return values[next - 1] + share * (values[next] - values[next - 1]);
}

/** What an answer leads to, as `consequence` computes it in Python. */
export function consequence(bid) {
  if (bid > largest) return { chance: 0, loss: 0, payment: 0, mean: 0, given: 0 };
  const [chance, given, rent] = [menu.chance, menu.loss, rents].map((values) => between(bid, values));
  const mean = bid * given + rent;
  return { chance, mean, given, loss: chance > 0 ? given / chance : 0, payment: chance > 0 ? mean / chance : 0 };
}

function place(bid) {
  const found = menu.bids.findIndex((one) => one >= bid);
  return found < 0 ? menu.bids.length : found;
}

/** The table of answers around the truth, for the price that is named; as `around` in Python. */
function showTruth(truth) {
  const table = document.getElementById("truth-table");
  let rows = 0;
  for (const row of table.querySelectorAll("[data-says]")) {
    const factor = Number(row.dataset.says);
    const inside = Math.min(Math.max(truth * factor, menu.bids[0]), menu.bids[menu.bids.length - 1]);
    const bid = factor === 1 ? truth : inside;
    row.hidden = factor !== 1 && Math.abs(place(bid) - place(truth)) <= alike;
    rows += row.hidden ? 0 : 1;
    const found = consequence(bid);
    const cost = truth * found.given;
    const texts = {
      say: amount(bid * step, currency, decimals),
      paid: fixed(found.mean, decimals),
      cost: fixed(cost, decimals),
      left: fixed(found.mean - cost, decimals),
    };
    for (const [name, text] of Object.entries(texts)) row.querySelector(`[data-truth="${name}"]`).textContent = text;
  }
  table.querySelector('[data-truth="price"]').textContent = amount(truth * step, currency, decimals);
  table.hidden = rows < 2;
}

function show(price) {
  const valid = price !== null && price >= Number(form.dataset.least) - 1e-12;
  panel.hidden = !valid;
  document.getElementById("units").hidden = !valid;
  if (!valid) return;
  const bid = price / step;
  const found = consequence(bid);
  tell("price", amount(price, currency, decimals));
  tell("chance", percent(found.chance));
  tell("sure", form.dataset.outOf.replace("{number}", outOf100(found.loss)));
  tell("payment", amount(found.payment, currency, decimals));
  tell("cost", amount(bid * found.loss, currency, decimals));
  tell("left", amount(Math.max(found.payment - bid * found.loss, 0), currency, decimals));
  document.getElementById("bought").hidden = found.chance <= 0;
  document.getElementById("not-bought").hidden = found.chance > 0;
  for (const place of document.querySelectorAll("[data-loss]")) {
    place.textContent = amount(bid * Number(place.dataset.loss), currency, decimals);
  }
  showTruth(bid);
  for (const mark of document.querySelectorAll(".menu-mark")) {
    const share = Math.min(Math.max((price - lowest) / (highest - lowest || 1), 0), 1);
    const [from, to] = [Number(mark.dataset.from), Number(mark.dataset.to)];
    mark.setAttribute("transform", `translate(${from + share * (to - from)} 0)`);
    mark.classList.remove("unmarked");
  }
}

function tell(name, text) {
  for (const place of panel.querySelectorAll(`[data-shows="${name}"]`)) place.textContent = text;
}

function typed() {
  const price = readNumber(field.value);
  if (price !== null) slider.value = Math.round((scale * (price - lowest)) / (highest - lowest || 1));
  describe(price);
  show(price);
}

function slid() {
  const price = lowest + (Number(slider.value) / scale) * (highest - lowest);
  const text = price.toFixed(decimals);
  field.value = document.documentElement.lang === "de" ? text.replace(".", ",") : text;
  const rounded = Math.max(Number(text), Number(form.dataset.least));
  describe(rounded);
  show(rounded);
}

function describe(price) {
  slider.setAttribute("aria-valuetext", price === null ? "" : amount(price, currency, decimals));
}

async function send(event) {
  const price = readNumber(field.value);
  if (price === null) return; // the server says what is wrong
  event.preventDefault();
  const { campaign, participant, setting, low, high, survey, most } = form.dataset;
  try {
    const hers = { price: price / step, currency, decimals };
    const shown = { campaign, participant, setting, largestLoss: most, ...hers };
    if (survey) await agreeToSurvey({ ...shown, survey: JSON.parse(survey) });
    else await agree({ ...shown, bounds: [low, high] });
  } catch (error) {
    if (error instanceof PrivatizeError && error.code === "changed") {
      document.getElementById("changed").hidden = false;
      return;
    } // a browser that cannot keep it asks her again when she delivers
  }
  form.submit();
}

form.addEventListener("submit", send);
document.getElementById("slider-row").hidden = false;
for (const element of document.querySelectorAll(".without-script")) element.remove(); // or Enter would press its button
slider.max = scale;
slider.addEventListener("input", slid);
field.addEventListener("input", typed);
typed();
if (readNumber(field.value) === null) slider.value = scale / 2;
