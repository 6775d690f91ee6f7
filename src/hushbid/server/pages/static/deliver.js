/**
 * Delivery in the local setting: the value is typed into a field that belongs to no form and has no name, noise is added
 * here, never less than she agreed to when she named her price, and what is sent is shown first, letter by letter. The
 * noisy value is kept in this browser before it is shown, so every attempt sends the same one.
 */
import { fixed, number, readNumber } from "./numbers.js";
import { agreed, clamp, prepare, prepared, PrivatizeError, requireAgreed } from "./privatize.js";

const page = document.getElementById("delivery");
const { campaign, participant, loss, low, high, csrf, unit } = page.dataset;
const place = { campaign, participant };
const bounds = [Number(low), Number(high)];
const field = document.getElementById("value");
const make = document.getElementById("make");
const send = document.getElementById("send");
const limit = document.getElementById("limit");
const problem = document.getElementById("problem");
const shown = document.getElementById("shown");
let ready = null;
let terms = null;

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

/** The privacy loss that a number of percent stands for, no more: pages round up; null if there is none. */
function lossOf(percent) {
  if (percent === null) return null;
  const share = percent / 100;
  return share > 0.5 && share < 1 ? Math.log(share / (1 - share)) : null;
}

/** Stop before anything is typed if the offer goes beyond what this browser keeps. */
async function look() {
  const before = await prepared(place);
  if (before !== null) return show(before, null);
  terms = await agreed(place);
  document.getElementById("limit-row").hidden = terms !== null;
  if (terms === null) return;
  const { payment, currency, decimals } = page.dataset;
  const sameMoney = terms.currency === undefined || (terms.currency === currency && terms.decimals === Number(decimals));
  const enough = sameMoney && Number(payment) >= (1 - 1e-9) * terms.price * Number(loss) * 10 ** Number(decimals);
  try {
    requireAgreed(terms, { setting: "local", privacyLoss: loss, bounds });
    if (enough) return;
    refuse("price");
  } catch (error) {
    refuse(error.code);
  }
  document.getElementById("before").hidden = true;
}

async function noise() {
  const value = readNumber(field.value);
  if (value === null) return refuse("wrong");
  if (value !== clamp(value, bounds)) return refuse("outside");
  const atMost = terms === null ? lossOf(readNumber(limit.value)) : undefined;
  if (terms === null && atMost === null) return refuse("unknown");
  make.disabled = true;
  try {
    show(await prepare({ ...place, value, privacyLoss: loss, bounds, atMost }), value);
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
  await look();
} catch (error) {
  refuse(error instanceof PrivatizeError ? error.code : "failed");
}
