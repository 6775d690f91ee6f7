/**
 * One person's datum with noise, made in her browser: docs/reference/wire-format.md, version 1, as Python's
 * `hushbid.privatize` writes it. What leaves the browser is the message; the datum is neither sent nor stored here. (If
 * she wants so, kept.js keeps it in the browser until the offer is known.)
 *
 *     import { agree, prepare, prepared, PrivatizeError } from "./privatize.js";
 *     const place = { campaign, participant };                       // as the server names them
 *     await agree({ ...place, setting, bounds, largestLoss, price, currency, decimals }); // when she names her price: what she was shown
 *     const ready = (await prepared(place))                          // after a reload: what was made before
 *       ?? (await prepare({ ...place, value: input.value, privacyLoss, bounds }));
 *     ready.body       // the exact text of the request to PUT /api/v1/participation/delivery, on every attempt
 *     ready.noisy      // what the server will read in it, in data units
 *
 * The model. A datum x in the public range becomes a step X = floor(2^m · (x − low)/(high − low)) of a grid, and what
 * is sent is k = X + Z with P(Z = z) ∝ exp(−|z|/b), b = 2^m/ε exactly. Another datum moves X by at most 2^m, so it
 * changes the probability of any k by at most the factor exp(2^m/b) = exp(ε).
 *
 *   - The datum is a double until X is computed (the same subtraction and division as in Python, and IEEE 754 fixes
 *     both); X depends on this one datum and cannot leave [0, 2^m], so rounding there costs no privacy.
 *   - ε is the rational number that its double is, read from the bits. From there on all arithmetic is on BigInt, with
 *     random bits from crypto.getRandomValues. There is no seed and no way to pass one.
 *   - How much noise is added follows from ε, so a server that named any ε afterwards could ask for the datum itself.
 *     `agree` keeps the largest loss, the range and the setting she was shown when she named her price, and `prepare`
 *     draws nothing beyond them; where nothing was kept, she has to say the largest loss herself (`atMost`).
 *   - A second draw would double the loss. `prepare` looks and draws in one IndexedDB transaction, of which a browser
 *     runs one at a time whatever tabs are open, and gives nothing away before the transaction is on the disk.
 *
 * A module of its own without dependencies; needs no inline script and no eval, so `script-src 'self'` is enough.
 */

const FORMAT = "hushbid-local";
const VERSION = 1;
const LARGEST_GRID_BITS = 32;
const LEAST_LOSS = 2 ** -53; // below, the noise would not fit in 64 bits
const LARGEST_BOUND = 1e100;
const LEAST_WIDTH = 1e-100;
const FARTHEST = 50n; // noise scales
const NUMERAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const NONCE = /^[0-9a-f]{32}$/;
const INTEGER = /^(?:0|-?[1-9][0-9]*)$/;
const DATABASE = "hushbid";
const MESSAGES = "messages";
const AGREEMENTS = "agreements";
const STORES = [MESSAGES, AGREEMENTS];

/**
 * Why no message was made or found. The message is a sentence in English that never shows the datum; `code` is for
 * pages in other languages: "value", "loss", "bounds", "place", "storage", "terms", "damaged", and
 * "unknown", "more" or "changed" for what she did not agree to.
 */
export class PrivatizeError extends Error {
  constructor(code, sentence) {
    super(sentence);
    this.name = "PrivatizeError";
    this.code = code;
  }
}

// -- what a page uses -------------------------------------------------------------------------------------------------

/**
 * Keep what a person agrees to by naming her price, durably, before it is sent. Naming another price changes the price
 * only: from then on a larger loss counts for nothing, and another range or setting is refused.
 */
export async function agree({ bounds, ...shown }) {
  await agreeOn({ ...shown, range: rangeOf(bounds) });
}

/** The same for a range of any kind: texts and numbers by name. */
export async function agreeOn({ campaign, participant, setting, range, largestLoss, price, currency, decimals }) {
  const key = placeOf(campaign, participant);
  termsOf(largestLoss);
  const most = asNumber(largestLoss);
  const kept = await inStore("readwrite", (stores, give) => {
    const asked = stores.agreements.get(key);
    asked.onsuccess = () => {
      const before = asked.result ?? { setting, ...range, largestLoss: most };
      give(before);
      if (before.setting !== setting || !sameRange(before, range)) return;
      const lower = Math.min(before.largestLoss, most);
      const hers = { largestLoss: lower, price, currency, decimals };
      stores.agreements.put({ campaign, participant, setting, ...range, ...hers });
    };
  });
  if (kept.setting !== setting || !sameRange(kept, range)) throw changed();
}

/** What `agree` kept for this campaign and participant, or null. */
export async function agreed({ campaign, participant }) {
  const key = placeOf(campaign, participant);
  const kept = await inStore("readonly", (stores, give) => {
    const asked = stores.agreements.get(key);
    asked.onsuccess = () => give(asked.result);
  });
  return kept ?? null;
}

/** Refuse what goes beyond what she agreed to, or says herself where nothing was kept. */
export function requireAgreed(kept, { bounds, ...asked }) {
  requireAgreedOn(kept, { ...asked, range: rangeOf(bounds) });
}

/** The same for a range of any kind. */
export function requireAgreedOn(kept, { setting, privacyLoss, range, atMost }) {
  if (kept && (kept.setting !== setting || !sameRange(kept, range))) throw changed();
  const most = kept?.largestLoss ?? (atMost === undefined ? NaN : asNumber(atMost));
  if (Number.isNaN(most)) {
    throw new PrivatizeError("unknown", "This browser does not know what you agreed to: atMost must be given.");
  }
  if (!(asNumber(privacyLoss) <= most)) {
    throw new PrivatizeError("more", "The privacy loss is larger than you agreed to.");
  }
}

function changed() {
  return new PrivatizeError("changed", "The campaign names another range or setting than you agreed to.");
}

/**
 * The request body for a datum: made, stored durably, and only then given. Once there is one for this campaign and
 * participant it is given again, whatever the datum; with another privacy loss or range it is refused instead. Nothing is drawn for
 * more than she agreed to; `atMost` is the largest loss, in her own words, where `agree` has kept nothing.
 *
 * @param {{campaign: string, participant: string, value: string|number, privacyLoss: string|number,
 *          bounds: [string|number, string|number], atMost?: string|number}} given numbers, or texts such as "7.5" or "1e-3"
 * @returns {Promise<{body: string, message: object, noisy: number}>} `body` is what is sent, byte by byte; `message` is
 *          the message in it, `noisy` that message in data units
 */
export async function prepare({ campaign, participant, value, privacyLoss, bounds, atMost }) {
  const datum = asDatum(value);
  const terms = termsOf(privacyLoss);
  const { low, high } = rangeOf(bounds);
  const draw = () => drawn(datum, terms, [low, high]);
  return await prepareOnce({ campaign, participant, privacyLoss, atMost, range: { low, high }, terms, draw }, ONE_NUMBER);
}

/** What `prepare` does, for messages of any kind: what they are drawn by, how they are read, for which range. */
export async function prepareOnce({ campaign, participant, privacyLoss, atMost, range, terms, draw }, kind) {
  const key = placeOf(campaign, participant);
  const record = () => ({ campaign, participant, ...range, body: bodyOf(draw(), newNonce(), kind) });
  const kept = await inStore("readwrite", (stores, give) => {
    const asked = stores.messages.get(key);
    const agreement = stores.agreements.get(key); // requests are answered in their order
    agreement.onsuccess = () => {
      if (asked.result !== undefined) return give(asked.result);
      try {
        requireAgreedOn(agreement.result, { setting: "local", privacyLoss, range, atMost });
      } catch (refusal) {
        return give(refusal);
      }
      const found = record();
      stores.messages.add(found);
      give(found);
    };
  });
  if (kept instanceof PrivatizeError) throw kept;
  const ready = readyOf(kept, kind);
  const { grid_bits: bits, epsilon } = ready.message;
  if (!sameRange(kept, range) || bits !== terms.gridBits || !sameTexts(epsilon, terms.epsilon)) {
    throw new PrivatizeError("terms", "A noisy value was made before with another privacy loss or other bounds.");
  }
  return ready;
}

/** What `prepare` made before for this campaign and participant, or null. */
export async function prepared(place) {
  return await preparedBefore(place, ONE_NUMBER);
}

/** What `prepareOnce` made before, a message of a kind, or null; where there are several, `kind` is a function of the record. */
export async function preparedBefore({ campaign, participant }, kind) {
  const key = placeOf(campaign, participant);
  const kept = await inStore("readonly", (stores, give) => {
    const asked = stores.messages.get(key);
    asked.onsuccess = () => give(asked.result);
  });
  if (kept === undefined) return null;
  return readyOf(kept, typeof kind === "function" ? kind(kept) : kind);
}

/** A message with new noise. Nothing is kept: for anything that is sent, use `prepare`. */
export function privatize(value, privacyLoss, bounds) {
  return drawn(asDatum(value), termsOf(privacyLoss), asBounds(bounds));
}

/**
 * A message in data units, as the server reads it.
 * Number() of an integer rounds it once to the nearest double; dividing by a power of two is then exact.
 */
export function decode(message, bounds) {
  const [low, high] = asBounds(bounds);
  return low + (high - low) * (Number(BigInt(message.value)) / 2 ** message.grid_bits);
}

/** The datum that will count: the nearest one in the public range. */
export function clamp(value, bounds) {
  const [low, high] = asBounds(bounds);
  return Math.min(Math.max(asDatum(value), low), high);
}

// -- the grid ---------------------------------------------------------------------------------------------------------

/** The step of a datum on a grid of 2^gridBits steps: an integer from 0 to 2^gridBits. */
export function gridStep(value, bounds, gridBits) {
  const [low, high] = asBounds(bounds);
  const share = (clamp(value, bounds) - low) / (high - low);
  const [numerator, denominator] = ratioOf(share);
  return (numerator << BigInt(gridBits)) / denominator; // both nonnegative, so this rounds down
}

/**
 * What a privacy loss means in integers: the grid, the loss as a fraction in lowest terms, and the noise scale
 * 2^gridBits/ε as a fraction.
 */
export function termsOf(privacyLoss) {
  const loss = asNumber(privacyLoss);
  if (!(loss >= LEAST_LOSS && loss < Infinity)) {
    throw new PrivatizeError("loss", "privacyLoss must be a finite number of at least 2^-53.");
  }
  const [numerator, denominator] = ratioOf(loss);
  const exponent = bitLength(numerator) - bitLength(denominator) + 1; // ε = f · 2^exponent with ½ ≤ f < 1
  const gridBits = Math.min(LARGEST_GRID_BITS, 53 + exponent);
  const scale = [denominator << BigInt(gridBits), numerator];
  return { gridBits, epsilon: [String(numerator), String(denominator)], scale };
}

/** A finite double as the fraction in lowest terms that it is: an integer, and a power of two. */
export function ratioOf(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const biased = (bits >> 52n) & 0x7ffn;
  let numerator = bits & 0xfffffffffffffn;
  if (biased > 0n) numerator |= 1n << 52n;
  const exponent = (biased > 0n ? biased : 1n) - 1075n;
  if (numerator === 0n) return [0n, 1n];
  if (bits >> 63n) numerator = -numerator;
  if (exponent >= 0n) return [numerator << exponent, 1n];
  let denominator = 1n << -exponent;
  while (denominator > 1n && (numerator & 1n) === 0n) {
    numerator >>= 1n;
    denominator >>= 1n;
  }
  return [numerator, denominator];
}

function drawn(datum, terms, bounds) {
  const sum = gridStep(datum, bounds, terms.gridBits) + discreteLaplace(...terms.scale);
  return {
    format: FORMAT,
    version: VERSION,
    grid_bits: terms.gridBits,
    epsilon: terms.epsilon,
    value: String(withinReach(sum, terms)),
  };
}

/**
 * The nearest integer at most fifty noise scales from the range: farther out the server believes nobody. Noise gets
 * there with a probability below exp(−50), and cutting it off after it is drawn costs no privacy.
 */
export function withinReach(integer, { gridBits, scale: [numerator, denominator] }, scales = FARTHEST) {
  const farthest = (scales * numerator + denominator - 1n) / denominator;
  const last = (1n << BigInt(gridBits)) + farthest;
  if (integer < -farthest) return -farthest;
  return integer > last ? last : integer;
}

// -- the noise: integers only -----------------------------------------------------------------------------------------
//
// Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy (NeurIPS 2020, arXiv 2004.00010), section 5.
// Every probability is a ratio of integers or the exponential of one, and none is ever rounded. The time a draw takes
// depends slightly on what is drawn; nobody but the person can measure it, since sending is a step of its own.

/** An integer z with probability proportional to exp(−|z|·denominator/numerator): Algorithm 2. */
export function discreteLaplace(numerator, denominator) {
  for (;;) {
    const remainder = uniformBelow(numerator);
    if (!happensWithExpOf(remainder, numerator)) continue;
    let quotient = 0n;
    while (happensWithExpOf(1n, 1n)) quotient += 1n;
    const size = (remainder + numerator * quotient) / denominator; // rounded down: geometric, ratio exp(−1/scale)
    const negative = uniformBelow(2n) === 1n;
    if (negative && size === 0n) continue; // or zero would be drawn in two ways
    return negative ? -size : size;
  }
}

/** True with probability exp(−p/q), for 0 ≤ p/q ≤ 1: Algorithm 1, von Neumann's. */
export function happensWithExpOf(p, q) {
  let round = 1n;
  while (uniformBelow(q * round) < p) round += 1n;
  return (round & 1n) === 1n;
}

/** An integer from 0 to limit − 1, each equally likely: as many random bits as it has, anew if they are too large. */
export function uniformBelow(limit) {
  const bits = bitLength(limit - 1n);
  const words = new Uint32Array((bits + 31) >> 5);
  const excess = BigInt((words.length << 5) - bits);
  for (;;) {
    crypto.getRandomValues(words);
    let integer = 0n;
    for (const word of words) integer = (integer << 32n) | BigInt(word);
    integer >>= excess;
    if (integer < limit) return integer;
  }
}

/** How many binary digits a nonnegative integer has; none for zero. */
export function bitLength(integer) {
  return integer === 0n ? 0 : integer.toString(2).length;
}

// -- end of the noise -------------------------------------------------------------------------------------------------

// -- the store --------------------------------------------------------------------------------------------------------
//
// One message per campaign and participant, never changed and never removed: the range and the request body. It says no
// more than that; in particular it cannot tell whether a later call brings another datum. And one record of what she
// agreed to, in which nothing but the price changes, and the largest loss if it becomes smaller.

/** Do something in one transaction, and give what it gave once the transaction is on the disk. */
async function inStore(mode, work) {
  let database;
  try {
    database = await opened();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORES, mode, { durability: "strict" });
      let result;
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
      const [messages, agreements] = STORES.map((name) => transaction.objectStore(name));
      work({ messages, agreements }, (found) => {
        result = found;
      });
    });
  } catch {
    throw new PrivatizeError("storage", "This browser cannot keep a noisy value, so none is given away.");
  } finally {
    database?.close();
  }
}

function opened() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 2);
    asked.onupgradeneeded = () => {
      for (const name of STORES) {
        if (asked.result.objectStoreNames.contains(name)) continue;
        asked.result.createObjectStore(name, { keyPath: ["campaign", "participant"] });
      }
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

/** A stored record as `prepare` gives it; one that `prepare` did not write is neither sent nor drawn again. */
function readyOf(record, kind) {
  let message, nonce;
  try {
    ({ message, nonce } = JSON.parse(record.body));
  } catch {
    message = null;
  }
  if (!kind.isMessage(message) || !NONCE.test(nonce) || bodyOf(message, nonce, kind) !== record.body) {
    throw new PrivatizeError("damaged", "The noisy value kept in this browser is damaged; it is not made anew.");
  }
  return { body: record.body, message, noisy: kind.decoded(message, record) };
}

/** Messages about one number: their fields in order, which they are, and what they mean. */
const ONE_NUMBER = {
  fields: ["format", "version", "grid_bits", "epsilon", "value"],
  isMessage: (message) => hasHead(message, FORMAT) && isInteger(message.value),
  decoded: (message, { low, high }) => decode(message, [low, high]),
};

/** Whether a message states its format, a grid and a loss. */
export function hasHead(message, format) {
  return statesLoss(message, format) && Number.isInteger(message.grid_bits);
}

/** Whether a message states its format and a loss. */
export function statesLoss(message, format) {
  return (
    message?.format === format &&
    message.version === VERSION &&
    Array.isArray(message.epsilon) &&
    message.epsilon.length === 2 &&
    message.epsilon.every(isInteger)
  );
}

/** Whether this is an integer as it is sent. */
export function isInteger(text) {
  return typeof text === "string" && INTEGER.test(text);
}

function bodyOf(message, nonce, { fields }) {
  return JSON.stringify({ message: Object.fromEntries(fields.map((name) => [name, message[name]])), nonce });
}

/** A random name for the delivery, by which the server knows a repeated attempt without a look at what it carries. */
function newNonce() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether a record is about this range and no other. */
function sameRange(kept, range) {
  return ["low", "high", "survey"].every((name) => kept[name] === range[name]);
}

function sameTexts(one, other) {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

// -- what is given ----------------------------------------------------------------------------------------------------

/**
 * A number, or the number that a text writes in decimal digits; NaN if it is neither. Texts are what Python's float()
 * and Number() read alike: no "inf", no "0x10", no "1_000", no digits but 0 to 9, and not nothing.
 */
export function asNumber(given) {
  if (typeof given === "number") return given;
  const text = typeof given === "string" ? given.trim() : "";
  return NUMERAL.test(text) ? Number(text) : NaN;
}

/** Python clamps infinities; a browser refuses them, since nobody means one when typing "1e999". */
function asDatum(given) {
  const number = asNumber(given);
  if (!Number.isFinite(number)) {
    throw new PrivatizeError("value", "The value must be a finite number written in decimal digits, such as 7.5.");
  }
  return number;
}

function asBounds(given) {
  const [low, high] = Array.isArray(given) && given.length === 2 ? given.map(asNumber) : [NaN, NaN];
  const small = Math.max(Math.abs(low), Math.abs(high)) <= LARGEST_BOUND;
  if (!(small && high - low >= LEAST_WIDTH)) {
    throw new PrivatizeError("bounds", "bounds must be two numbers, the lower first, of size at most 1e100.");
  }
  return [low + 0, high + 0]; // without the sign of a negative zero
}

function rangeOf(bounds) {
  const [low, high] = asBounds(bounds);
  return { low, high };
}

function placeOf(campaign, participant) {
  for (const name of [campaign, participant]) {
    if (typeof name !== "string" || name === "") {
      throw new PrivatizeError("place", "campaign and participant must be texts that are not empty.");
    }
  }
  return [campaign, participant];
}
