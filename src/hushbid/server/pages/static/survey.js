/**
 * One person's answers to a survey with noise, made in her browser: docs/reference/wire-format.md, as Python's
 * `hushbid.disclosure.privatize_answers` writes them. What leaves the browser is the message; the answers are neither
 * sent nor stored.
 *
 *     import { agreeToSurvey, prepareAnswers, preparedAnswers } from "./survey.js";
 *     const survey = { questions, groups };         // kind, name, bounds or answers of each; rows and parts of each
 *     await agreeToSurvey({ ...place, setting, survey, largestLoss, price, currency, decimals });
 *     const ready = (await preparedAnswers(place)) ?? (await prepareAnswers({ ...place, answers, privacyLoss, survey }));
 *
 * The model is that of privatize.js, which keeps, agrees, and draws one number. A group of questions has its part of
 * the loss ε, in units of 2^-30: its cells are steps of a grid of 2^m, and their noise has the scale
 * b = 2^m·2^30/(ε·part), exactly. Numbers and yes/no questions share a box, P(z) ∝ exp(−max|z|/b); a choice has a cell
 * for each answer, 2^m for hers and 0 for the others, and P(z) ∝ exp(−Σz⁺/b) on vectors that add up to 0. Other answers
 * change the probability of what is sent by at most the factor exp(ε·part/2^30) for each group, exp(ε) for all.
 *
 * A single yes/no question gets no noise: the message is the truth with odds e^ε : 1, else the opposite (randomised
 * response). Of the survey's groups nothing but their parts is looked at then.
 */

import {
  agreeOn,
  asNumber,
  bitLength,
  discreteLaplace,
  gridStep,
  happensWithExpOf,
  hasHead,
  isInteger,
  prepareOnce,
  preparedBefore,
  PrivatizeError,
  ratioOf,
  requireAgreedOn,
  statesLoss,
  termsOf,
  uniformBelow,
  withinReach,
} from "./privatize.js";

const FORMAT = "hushbid-local-survey";
const RESPONSE_FORMAT = "hushbid-local-response";
const VERSION = 1;
const LARGEST_GRID_BITS = 32;
const LARGEST_LOSS = 2 ** 24;
const PARTS = 2 ** 30;
const FARTHEST = 50n; // noise scales, and
const FARTHER = 4n; // as many more for each cell
const KINDS = ["number", "yes_no", "choice"];

// -- what a page uses -------------------------------------------------------------------------------------------------

/** Keep what a person agrees to by naming her price for a survey, as `agree` does for one number. */
export async function agreeToSurvey({ survey, ...shown }) {
  await agreeOn({ ...shown, range: rangeOf(asSurvey(survey)) });
}

/** Refuse what goes beyond what she agreed to, as `requireAgreed` does for one number. */
export function requireAgreedSurvey(kept, { survey, ...asked }) {
  requireAgreedOn(kept, { ...asked, range: rangeOf(asSurvey(survey)) });
}

/** The request body for her answers, in the questions' order: made, stored durably, and only then given; once. */
export async function prepareAnswers({ campaign, participant, answers, privacyLoss, survey, atMost }) {
  const asked = asSurvey(survey);
  const { terms, draw } = drawerOf(answers, privacyLoss, asked);
  const kept = { campaign, participant, privacyLoss, atMost, range: rangeOf(asked), terms, draw };
  return await prepareOnce(kept, kindOf(asked));
}

/** What `prepareAnswers` made before for this campaign and participant, or null. */
export async function preparedAnswers(place) {
  return await preparedBefore(place, ({ survey }) => kindOf(JSON.parse(survey)));
}

/** A message with new noise. Nothing is kept: for anything that is sent, use `prepareAnswers`. */
export function privatizeAnswers(answers, privacyLoss, survey) {
  return drawerOf(answers, privacyLoss, asSurvey(survey)).draw();
}

/** What decides about a message, and what draws one each time it is called. */
function drawerOf(answers, privacyLoss, asked) {
  if (isOneYesNo(asked)) {
    const { epsilon } = termsOf(privacyLoss);
    const [truth] = oneAnswerEach(answers, asked).map(yesOrNo).map(BigInt);
    const ratio = epsilon.map(BigInt);
    const draw = () => ({ format: RESPONSE_FORMAT, version: VERSION, epsilon, answer: Number(flipped(truth, ...ratio)) });
    return { terms: { epsilon }, draw };
  }
  const terms = surveyTermsOf(privacyLoss, asked);
  const steps = stepsOf(answers, asked, terms.gridBits);
  return { terms, draw: () => drawn(steps, asked, terms) };
}

/** Messages about a survey: their fields in order, which they are, and their values as parts of the ranges. */
const ANSWERS = {
  fields: ["format", "version", "grid_bits", "epsilon", "parts", "values"],
  isMessage: (message) =>
    hasHead(message, FORMAT) &&
    Array.isArray(message.parts) &&
    message.parts.every(Number.isInteger) &&
    Array.isArray(message.values) &&
    message.values.every((cells) => Array.isArray(cells) && cells.every(isInteger)),
  decoded: ({ grid_bits: bits, values }) =>
    values.map((cells) => cells.map((cell) => Number(BigInt(cell)) / 2 ** bits)),
};

/** Messages about a single yes/no question. */
const RESPONSE = {
  fields: ["format", "version", "epsilon", "answer"],
  isMessage: (message) => statesLoss(message, RESPONSE_FORMAT) && [0, 1].includes(message.answer),
  decoded: ({ epsilon: [numerator, denominator], answer }) => {
    const loss = Number(BigInt(numerator)) / Number(BigInt(denominator));
    return [[0.5 + (answer - 0.5) / Math.tanh(loss / 2)]];
  },
};

function kindOf(survey) {
  return isOneYesNo(survey) ? RESPONSE : ANSWERS;
}

function isOneYesNo({ questions }) {
  return questions.length === 1 && questions[0].kind === "yes_no";
}

// -- the grid ---------------------------------------------------------------------------------------------------------

/** What a privacy loss means in integers: the grid, the loss in lowest terms, and each group's noise scale. */
export function surveyTermsOf(privacyLoss, { groups }) {
  const loss = asNumber(privacyLoss);
  if (!(loss > 0 && loss <= LARGEST_LOSS)) {
    throw new PrivatizeError("loss", "privacyLoss must be a positive number of at most 2^24.");
  }
  const [numerator, denominator] = ratioOf(loss);
  const whole = denominator * BigInt(PARTS);
  const least = numerator * BigInt(Math.min(...groups.map(({ parts }) => parts)));
  const gridBits = Math.min(LARGEST_GRID_BITS, 53 + bitLength(least) - bitLength(whole) + 1);
  if (gridBits < 1) throw new PrivatizeError("loss", "privacyLoss is too small to share among the questions.");
  const scales = groups.map(({ parts }) => [whole << BigInt(gridBits), numerator * BigInt(parts)]);
  return { gridBits, epsilon: [String(numerator), String(denominator)], scales };
}

/** Her answers by group and cell, in steps of the grid. */
export function stepsOf(answers, { questions, groups }, gridBits) {
  oneAnswerEach(answers, { questions });
  return groups.map(({ rows }) =>
    rows.flatMap((row) => {
      const { kind, bounds, answers: allowed } = questions[row];
      if (kind === "number") return [gridStep(answers[row], bounds, gridBits)];
      const place = kind === "choice" ? placeAmong(answers[row], allowed) : yesOrNo(answers[row]);
      if (kind === "yes_no") return [gridStep(place, [0, 1], gridBits)];
      return allowed.map((_, at) => (at === place ? 1n << BigInt(gridBits) : 0n));
    }),
  );
}

function oneAnswerEach(answers, { questions }) {
  if (!Array.isArray(answers) || answers.length !== questions.length) {
    throw new PrivatizeError("value", "There must be one answer to each question.");
  }
  return answers;
}

function yesOrNo(answer) {
  const place = [false, true].indexOf(answer);
  if (place < 0) throw new PrivatizeError("value", "A yes/no question must be answered with true or false.");
  return place;
}

function placeAmong(answer, allowed) {
  const place = allowed.indexOf(answer);
  if (place < 0) throw new PrivatizeError("value", "A choice must be answered with one of its answers.");
  return place;
}

function drawn(steps, { groups }, { gridBits, epsilon, scales }) {
  const values = groups.map(({ choice }, at) => {
    const scale = scales[at];
    const cells = steps[at];
    const noise = choice ? choiceNoise(BigInt(cells.length), ...scale) : boxNoise(BigInt(cells.length), ...scale);
    const reach = FARTHEST + FARTHER * BigInt(cells.length);
    return cells.map((cell, place) => String(withinReach(cell + noise[place], { gridBits, scale }, reach)));
  });
  return { format: FORMAT, version: VERSION, grid_bits: gridBits, epsilon, parts: groups.map((one) => one.parts), values };
}

// -- the noise: integers only -----------------------------------------------------------------------------------------
//
// Exact mixtures of what privatize.js draws; hushbid.disclosure.noise says why. Numbers that remain count cells.

/** So many integers z with probability proportional to exp(−max|z|·denominator/numerator). */
export function boxNoise(cells, numerator, denominator) {
  if (cells === 1n) return [discreteLaplace(numerator, denominator)];
  const radius = sizeOf(boxStarts(cells), cells + 1n, numerator, denominator);
  return upTo(cells).map(() => uniformBelow(2n * radius + 1n) - radius);
}

/** So many integers z that add up to 0, with probability proportional to exp(−Σz⁺·denominator/numerator). */
export function choiceNoise(cells, numerator, denominator) {
  const size = sizeOf(choiceStarts(cells), cells - 1n, numerator, denominator);
  const moved = upTo(cells).map(() => 0n);
  if (size === 0n) return moved;
  // how many cells are positive: as many vectors have j as C(d,j)·C(m−1,j−1)·C(m+d−j−1,d−j−1)
  const ways = upTo(cells - 1n).map(
    (at) => chosen(cells, at + 1n) * chosen(size - 1n, at) * chosen(size + cells - at - 2n, cells - at - 2n),
  );
  const positive = weighted(ways) + 1n;
  const places = shuffled(upTo(cells));
  const rising = partsOf(size, positive);
  const falling = partsOf(size + cells - positive, cells - positive); // may be 0: each as if it were one larger
  upTo(cells).forEach((at) => {
    moved[places[at]] = at < positive ? rising[at] : 1n - falling[at - positive];
  });
  return moved;
}

/** The truth, 0 or 1, with odds e^(numerator/denominator) : 1; else the opposite. Heads: lie as often as e^−ε, or toss again. */
export function flipped(truth, numerator, denominator) {
  while (uniformBelow(2n) === 1n) {
    if (happensWithExp(numerator, denominator)) return 1n - truth;
  }
  return truth;
}

/** True with probability exp(−numerator/denominator), whatever the size of the ratio: once for each whole, and for the rest. */
function happensWithExp(numerator, denominator) {
  let left = numerator;
  for (; left > denominator; left -= denominator) {
    if (!happensWithExpOf(1n, 1n)) return false;
  }
  return happensWithExpOf(left, denominator);
}

/** An integer that starts at k with the weights of `starts`, kept with probability exp(−k/scale), plus geometric terms. */
function sizeOf(starts, terms, numerator, denominator) {
  for (;;) {
    const start = weighted(starts);
    if (geometric(numerator, denominator) < start) continue;
    return upTo(terms).reduce((size) => size + geometric(numerator, denominator), start);
  }
}

/** An integer g = 0, 1, … with probability proportional to exp(−g·denominator/numerator). */
function geometric(numerator, denominator) {
  const whole = discreteLaplace(numerator, denominator);
  return whole < 0n ? -whole - 1n : whole;
}

/** A place, with probability proportional to its weight. */
function weighted(weights) {
  let left = uniformBelow(weights.reduce((sum, weight) => sum + weight, 0n));
  let place = 0n;
  while (left >= weights[place]) {
    left -= weights[place];
    place += 1n;
  }
  return place;
}

/** The Eulerian numbers of type B: 1, 1; 1, 6, 1; 1, 23, 23, 1; … */
export function boxStarts(cells) {
  return upTo(cells).reduce(
    (row, before) =>
      upTo(before + 2n).map((k) => (2n * k + 1n) * (row[k] ?? 0n) + (2n * (before + 1n - k) + 1n) * (row[k - 1n] ?? 0n)),
    [1n],
  );
}

/** C(d−1, k)² for every k. */
export function choiceStarts(cells) {
  return upTo(cells).map((k) => chosen(cells - 1n, k) ** 2n);
}

/** How many ways there are to choose some of several. */
function chosen(several, some) {
  return upTo(some).reduce((ways, at) => (ways * (several - at)) / (at + 1n), 1n);
}

/** A whole as so many positive parts in order, each way equally likely. */
function partsOf(whole, count) {
  const cuts = new Set();
  while (BigInt(cuts.size) < count - 1n) cuts.add(uniformBelow(whole - 1n) + 1n); // anew where a cut is there already
  const ends = [0n, ...[...cuts].sort((one, other) => (one < other ? -1 : 1)), whole];
  return upTo(count).map((at) => ends[at + 1n] - ends[at]);
}

/** The same things in an order, each equally likely. */
function shuffled(things) {
  const found = [...things];
  for (let last = BigInt(found.length) - 1n; last > 0n; last -= 1n) {
    const other = uniformBelow(last + 1n);
    [found[last], found[other]] = [found[other], found[last]];
  }
  return found;
}

/** 0, 1, … below a limit. */
function upTo(limit) {
  const found = [];
  for (let at = 0n; at < limit; at += 1n) found.push(at);
  return found;
}

// -- end of the noise -------------------------------------------------------------------------------------------------

/** A survey as it is used here: only what decides about a message, and whether a group is a choice. */
function asSurvey(given) {
  const { questions, groups } = given ?? {};
  const whole = Array.isArray(questions) && Array.isArray(groups) && groups.every(isGroup) && questions.every(isQuestion);
  const rows = whole ? groups.flatMap((group) => group.rows).sort((one, other) => one - other) : [];
  const each = rows.length > 0 && rows.length === questions.length && rows.every((row, at) => row === at);
  const all = each && groups.reduce((sum, { parts }) => sum + parts, 0) === PARTS;
  const isChoice = (row) => questions[row].kind === "choice";
  if (!all || !groups.every(({ rows: own }) => own.length === 1 || !own.some(isChoice))) {
    throw new PrivatizeError("bounds", "survey must have questions, and groups that share them and all of the loss.");
  }
  return {
    questions: questions.map(({ kind, name, bounds, answers }) => ({ kind, name, bounds, answers })),
    groups: groups.map(({ rows: own, parts }) => ({ rows: own, parts, choice: isChoice(own[0]) })),
  };
}

function isGroup(group) {
  const { rows, parts } = group ?? {};
  return Array.isArray(rows) && rows.length > 0 && rows.every(Number.isInteger) && Number.isInteger(parts) && parts > 0;
}

function isQuestion(question) {
  const { kind, name, answers } = question ?? {};
  if (!KINDS.includes(kind) || typeof name !== "string") return false;
  if (kind !== "choice") return true; // the bounds of a number are looked at with the number
  return Array.isArray(answers) && answers.length > 1 && new Set(answers).size === answers.length;
}

/** The survey as the text by which the browser knows it again. */
function rangeOf(survey) {
  return { survey: JSON.stringify(survey) };
}
