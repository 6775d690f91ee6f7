/**
 * Delivery in the central setting: a form that works without scripts. With them, it is taken away if the campaign is not
 * what she agreed to when she named her price in this browser: another setting or range, or a larger privacy loss.
 */
import { agreed, requireAgreed } from "./privatize.js";
import { requireAgreedSurvey } from "./survey.js";

const form = document.getElementById("value-form");
const { campaign, participant, loss, low, high, survey } = form.dataset;
const problem = document.getElementById("problem");

try {
  const kept = await agreed({ campaign, participant });
  const asked = { setting: "central", privacyLoss: loss };
  if (kept !== null && survey) requireAgreedSurvey(kept, { ...asked, survey: JSON.parse(survey) });
  else if (kept !== null) requireAgreed(kept, { ...asked, bounds: [low, high] });
} catch (error) {
  if (error.code === "changed" || error.code === "more") {
    problem.textContent = problem.dataset[error.code];
    problem.hidden = false;
    form.remove();
  }
}
