/**
 * Delivery of the answers to several questions in the local setting, as deliver.js does it for one value: answers are
 * given in fields that belong to no form and have no names, noise is added here to all of them together, never less
 * than she agreed to, and what is sent is shown first, letter by letter, kept here, and the same on every attempt.
 */
import { readNumber } from "./numbers.js";
import { agreed, clamp, PrivatizeError } from "./privatize.js";
import { prepareAnswers, preparedAnswers, requireAgreedSurvey } from "./survey.js";

const page = document.getElementById("delivery");
const { campaign, participant, loss, csrf } = page.dataset;
const place = { campaign, participant };
const survey = JSON.parse(page.dataset.survey);
const fields = survey.questions.map((_, at) => document.getElementById(`answer-${at}`));
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
}

function show(found, made) {
  ready = found;
  problem.hidden = true;
  document.getElementById("before").hidden = true;
  shown.hidden = false;
  document.getElementById("body").textContent = found.body;
  document.getElementById("kept").hidden = made;
  shown.focus();
}

/** One answer as it is privatised; undefined if there is none, or one that is not allowed. */
function answerTo({ kind, bounds, answers }, text) {
  if (kind === "yes_no") return { yes: true, no: false }[text];
  if (kind === "choice") return answers.includes(text) ? text : undefined;
  const value = readNumber(text);
  return value === null || value !== clamp(value, bounds) ? undefined : value;
}

/** The privacy loss that a number of percent stands for, no more: pages round up; null if there is none. */
function lossOf(percent) {
  if (percent === null) return null;
  const share = percent / 100;
  return share > 0.5 && share < 1 ? Math.log(share / (1 - share)) : null;
}

/** Stop before anything is typed if the offer goes beyond what this browser keeps. */
async function look() {
  const before = await preparedAnswers(place);
  if (before !== null) return show(before, false);
  terms = await agreed(place);
  document.getElementById("limit-row").hidden = terms !== null;
  if (terms === null) return;
  const { payment, currency, decimals } = page.dataset;
  const sameMoney = terms.currency === currency && terms.decimals === Number(decimals);
  const enough = sameMoney && Number(payment) >= (1 - 1e-9) * terms.price * Number(loss) * 10 ** Number(decimals);
  try {
    requireAgreedSurvey(terms, { setting: "local", privacyLoss: loss, survey });
    if (enough) return;
    refuse("price");
  } catch (error) {
    refuse(error.code);
  }
  document.getElementById("before").hidden = true;
}

async function noise() {
  const answers = survey.questions.map((question, at) => answerTo(question, fields[at].value));
  const open = answers.indexOf(undefined);
  fields.forEach((field, at) => field.setAttribute("aria-invalid", answers[at] === undefined));
  if (open >= 0) {
    refuse("value");
    return fields[open].focus();
  }
  const atMost = terms === null ? lossOf(readNumber(limit.value)) : undefined;
  if (terms === null && atMost === null) return refuse("unknown");
  make.disabled = true;
  try {
    show(await prepareAnswers({ ...place, answers, privacyLoss: loss, survey, atMost }), true);
    for (const field of fields) field.value = "";
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
send.addEventListener("click", deliver);
try {
  await look();
} catch (error) {
  refuse(error instanceof PrivatizeError ? error.code : "failed");
}
