/**
 * Answers as they are, kept in this browser until the offer is known, because she asked for it: in localStorage, under
 * the campaign and the participant, and nowhere else. They are never sent. They go as soon as noise was added to them,
 * when she erases them, when her page says that nothing of hers is wanted, and, with those of every other campaign on
 * this server, when she leaves or ends this device from another one (forget.js).
 *
 * And what a page asks, a number or questions, for the scripts that keep answers and that deliver them: in fields that
 * belong to no form and have no names.
 */
import { readNumber } from "./numbers.js";
import { clamp } from "./privatize.js";

const PREFIX = "hushbid-answers ";
const nameOf = ({ campaign, participant }) => `${PREFIX}${campaign} ${participant}`;

/** Keep answers in the place of those kept before; false if this browser cannot. */
export function keepAnswers(place, answers) {
  try {
    localStorage.setItem(nameOf(place), JSON.stringify(answers));
    return true;
  } catch {
    return false;
  }
}

/** The answers that are kept, or null. */
export function keptAnswers(place) {
  try {
    return JSON.parse(localStorage.getItem(nameOf(place)));
  } catch {
    return null;
  }
}

/** Forget them; harmless if there are none. */
export function eraseAnswers(place) {
  try {
    localStorage.removeItem(nameOf(place));
  } catch {
    // a browser that keeps nothing has nothing to forget
  }
}

/** Erase the answers of every campaign on this server that this browser keeps. */
export function eraseAllAnswers() {
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name);
  } catch {
    // a browser that keeps nothing has nothing to forget
  }
}

/** What a page asks: its questions, of which a number alone is one, with their fields. */
export function askedOn(page) {
  const { survey, low, high } = page.dataset;
  const questions = survey ? JSON.parse(survey).questions : [{ kind: "number", bounds: [Number(low), Number(high)] }];
  const fields = questions.map((_, at) => document.getElementById(survey ? `answer-${at}` : "value"));
  return { questions, fields };
}

/** What was typed, as it is privatised; undefined where there is nothing, or what is not allowed. */
export function answersIn({ questions, fields }) {
  const answers = questions.map((question, at) => answerTo(question, fields[at].value));
  fields.forEach((field, at) => field.setAttribute("aria-invalid", answers[at] === undefined));
  return answers;
}

/** Whether kept answers answer these questions. */
export function fits(questions, answers) {
  return Array.isArray(answers) && answers.length === questions.length && questions.every((one, at) => isAnswer(one, answers[at]));
}

function answerTo(question, text) {
  const meant = { yes_no: () => ({ yes: true, no: false })[text], choice: () => text, number: () => readNumber(text) };
  const answer = meant[question.kind]();
  return isAnswer(question, answer) ? answer : undefined;
}

function isAnswer({ kind, bounds, answers }, answer) {
  if (kind === "yes_no") return typeof answer === "boolean";
  if (kind === "choice") return answers.includes(answer);
  return typeof answer === "number" && answer === clamp(answer, bounds);
}
