/**
 * Delivery in the local setting: a value, or the answers to several questions, are typed into fields that belong to no
 * form and have no names, or were kept in this browser before (kept.js). Noise is added here, to all of them together,
 * never less than she agreed to when she named her price, and what is sent is shown first, letter by letter. The noisy
 * message is kept in this browser before it is shown, so every attempt sends the same one.
 */
import { answersIn, askedOn, eraseAnswers, fits, keptAnswers } from "./kept.js";
import { fixed, number, readNumber } from "./numbers.js";
import { agreed, prepare, prepared, PrivatizeError, requireAgreed } from "./privatize.js";
import { prepareAnswers, preparedAnswers, requireAgreedSurvey } from "./survey.js";

const page = document.getElementById("delivery");
const { campaign, participant, loss, low, high, csrf, unit } = page.dataset;
const place = { campaign, participant };
const survey = page.dataset.survey ? JSON.parse(page.dataset.survey) : null;
const bounds = [Number(low), Number(high)];
const asked = askedOn(page);
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

/** Show what will be sent; with the answers it was made of, if they are known here. */
function show(found, answers) {
  eraseAnswers(place);
  ready = found;
  problem.hidden = true;
  document.getElementById("before").hidden = true;
  shown.hidden = false;
  if (!survey) {
    document.getElementById("plain-row").hidden = answers === null;
    if (answers !== null) document.getElementById("plain").textContent = `${number(answers[0], 12)}${unit}`;
    document.getElementById("noisy").textContent = `${written(found.noisy)}${unit}`;
  }
  document.getElementById("body").textContent = found.body;
  document.getElementById("kept").hidden = answers !== null;
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

/** Stop before anything is typed if the offer goes beyond what this browser keeps; go on with answers that it keeps. */
async function look() {
  const before = survey ? await preparedAnswers(place) : await prepared(place);
  if (before !== null) return show(before, null);
  terms = await agreed(place);
  document.getElementById("limit-row").hidden = terms !== null;
  if (terms === null) return;
  if (!isAsAgreed()) {
    eraseAnswers(place);
    document.getElementById("before").hidden = true;
    return;
  }
  const answers = keptAnswers(place);
  if (fits(asked.questions, answers)) await noise(answers);
}

function isAsAgreed() {
  const { payment, currency, decimals } = page.dataset;
  const sameMoney = terms.currency === currency && terms.decimals === Number(decimals);
  const enough = sameMoney && Number(payment) >= (1 - 1e-9) * terms.price * Number(loss) * 10 ** Number(decimals);
  const offered = { setting: "local", privacyLoss: loss };
  try {
    if (survey) requireAgreedSurvey(terms, { ...offered, survey });
    else requireAgreed(terms, { ...offered, bounds });
  } catch (error) {
    refuse(error.code);
    return false;
  }
  if (!enough) refuse("price");
  return enough;
}

async function typed() {
  const answers = answersIn(asked);
  const open = answers.indexOf(undefined);
  if (open < 0) return await noise(answers);
  const unread = !survey && readNumber(asked.fields[open].value) === null;
  refuse(survey ? "value" : unread ? "wrong" : "outside");
  asked.fields[open].focus();
}

async function noise(answers) {
  const atMost = terms === null ? lossOf(readNumber(limit.value)) : undefined;
  if (terms === null && atMost === null) return refuse("unknown");
  make.disabled = true;
  const given = { ...place, privacyLoss: loss, atMost };
  try {
    const made = survey ? prepareAnswers({ ...given, answers, survey }) : prepare({ ...given, value: answers[0], bounds });
    show(await made, answers);
    for (const field of asked.fields) field.value = "";
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

make.addEventListener("click", typed);
if (!survey) {
  asked.fields[0].addEventListener("keydown", (event) => {
    if (event.key === "Enter") typed();
  });
}
send.addEventListener("click", deliver);
try {
  await look();
} catch (error) {
  refuse(error instanceof PrivatizeError ? error.code : "failed");
}
