/**
 * Delivery in the local setting: the value is typed into a field that belongs to no form and has no name, noise is added
 * here, and what is sent is shown first, letter by letter. The noisy value is kept in this browser before it is shown, so
 * every attempt sends the same one.
 */
import { fixed, number, readNumber } from "./numbers.js";
import { clamp, prepare, prepared, PrivatizeError } from "./privatize.js";

const page = document.getElementById("delivery");
const { campaign, participant, loss, low, high, csrf, unit } = page.dataset;
const place = { campaign, participant };
const bounds = [Number(low), Number(high)];
const field = document.getElementById("value");
const make = document.getElementById("make");
const send = document.getElementById("send");
const problem = document.getElementById("problem");
const shown = document.getElementById("shown");
let ready = null;

page.hidden = false;

function refuse(name) {
  problem.textContent = page.dataset[name] ?? page.dataset.failed;
  problem.hidden = false;
  field.setAttribute("aria-invalid", name === "wrong" || name === "outside");
}

function show(found, value) {
  ready = found;
  problem.hidden = true;
  field.removeAttribute("aria-invalid");
  document.getElementById("before").hidden = true;
  shown.hidden = false;
  document.getElementById("plain-row").hidden = value === null;
  if (value !== null) document.getElementById("plain").textContent = `${number(value, 12)}${unit}`;
  document.getElementById("noisy").textContent = `${written(found.noisy)}${unit}`;
  document.getElementById("body").textContent = found.body;
  document.getElementById("kept").hidden = value !== null;
  shown.focus();
}

function written(value) {
  const width = bounds[1] - bounds[0];
  return fixed(value, Math.min(Math.max(0, 3 - Math.floor(Math.log10(width))), 12));
}

async function noise() {
  const value = readNumber(field.value);
  if (value === null) return refuse("wrong");
  if (value !== clamp(value, bounds)) return refuse("outside");
  make.disabled = true;
  try {
    show(await prepare({ ...place, value, privacyLoss: loss, bounds }), value);
    field.value = "";
  } catch (error) {
    refuse(error instanceof PrivatizeError ? error.code : "failed");
  } finally {
    make.disabled = false;
  }
}

async function deliver() {
  send.disabled = true;
  problem.hidden = true;
  try {
    const answer = await fetch("/p/delivery", {
      method: "PUT",
      headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": csrf },
      body: ready.body,
    });
    if (answer.ok || answer.status === 409) return location.assign("/p");
    refuse("refused");
  } catch {
    refuse("unsent");
  }
  send.disabled = false;
}

make.addEventListener("click", noise);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") noise();
});
send.addEventListener("click", deliver);
try {
  const before = await prepared(place);
  if (before !== null) show(before, null);
} catch (error) {
  refuse(error instanceof PrivatizeError ? error.code : "failed");
}
