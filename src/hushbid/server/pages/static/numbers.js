/** Numbers as the server writes and reads them in the page's language (hushbid.server.pages.wording). */
const language = document.documentElement.lang;
const { decimal, group, over, under } = document.documentElement.dataset;
const NBSP = "\u00a0";
const MINUS = "\u2212";

/** How sure somebody can become at most who gave a value even odds. */
export function sureness(privacyLoss) {
  return 1 / (1 + Math.exp(-privacyLoss));
}

export function fixed(value, decimals) {
  const [whole, part] = Math.abs(value).toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group);
  const text = part === undefined ? grouped : `${grouped}${decimal}${part}`;
  return value < 0 && /[1-9]/.test(text) ? `${MINUS}${text}` : text;
}

export function number(value, digits = 4) {
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  const text = fixed(value, Math.min(Math.max(0, digits - 1 - size), 20));
  return text.includes(decimal) ? text.replace(/0+$/, "").replace(decimal === "," ? /,$/ : /\.$/, "") : text;
}

export function amount(value, currency, decimals) {
  const small = Math.abs(value) > 0 && Math.abs(value) < 0.5 * 10 ** -decimals;
  return `${small ? number(value, 2) : fixed(value, decimals)}${NBSP}${currency}`;
}

export function percent(share) {
  if (share > 0 && share < 0.005) return under.replace("{number}", `1${NBSP}%`);
  if (share >= 0.995 && share < 1) return over.replace("{number}", `99${NBSP}%`);
  return `${(100 * share).toFixed(0)}${NBSP}%`;
}

export function sure(privacyLoss) {
  const tenths = Math.ceil(1000 * sureness(privacyLoss) - 1e-9);
  if (tenths > 999) return over.replace("{number}", `${fixed(99.9, 1)}${NBSP}%`);
  return `${number(tenths / 10)}${NBSP}%`;
}

export function outOf100(privacyLoss) {
  const whole = Math.ceil(100 * sureness(privacyLoss) - 1e-9);
  return whole < 100 ? String(whole) : sure(privacyLoss).replace(`${NBSP}%`, "");
}

/** The number in a text, or null; what may be meant to separate thousands is not guessed. */
export function readNumber(text) {
  const plain = text.replace(/\s/g, "").replace(MINUS, "-");
  if (!/^[+-]?(?:[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)$/.test(plain)) return null;
  const place = plain.lastIndexOf(group);
  if (place >= 0 && plain.length - place === 4) return null;
  return Number(plain.replace(",", "."));
}

export { language };
