/**
 * Answers typed before the offer is known, in the local setting: kept in this browser if she wants so (kept.js), shown
 * again, and erased by a button. On a page that asks for nothing any more they are erased.
 */
import { answersIn, askedOn, eraseAnswers, fits, keepAnswers, keptAnswers } from "./kept.js";
import { number } from "./numbers.js";

const page = document.getElementById("keep");
const place = page.dataset;

if (page.dataset.wanted) offer();
else eraseAnswers(place);

function offer() {
  const asked = askedOn(page);
  const problem = document.getElementById("problem");
  page.hidden = false;

  function show() {
    const answers = keptAnswers(place);
    const there = fits(asked.questions, answers);
    document.getElementById("type").hidden = there;
    document.getElementById("kept").hidden = !there;
    problem.hidden = true;
    const list = document.getElementById("kept-answers");
    list.replaceChildren(...(there ? answers.map((answer, at) => row(asked.fields[at], answer)) : []));
  }

  function row(field, answer) {
    const [line, name, value] = ["div", "dt", "dd"].map((kind) => document.createElement(kind));
    name.textContent = document.querySelector(`label[for="${field.id}"]`).textContent;
    value.textContent = written(answer);
    line.append(name, value);
    return line;
  }

  function written(answer) {
    if (typeof answer === "boolean") return answer ? page.dataset.yes : page.dataset.no;
    return typeof answer === "number" ? number(answer, 12) : answer;
  }

  function refuse(name) {
    problem.textContent = page.dataset[name];
    problem.hidden = false;
  }

  document.getElementById("keep-go").addEventListener("click", () => {
    const answers = answersIn(asked);
    const open = answers.indexOf(undefined);
    if (open >= 0) {
      refuse("missing");
      return asked.fields[open].focus();
    }
    if (!keepAnswers(place, answers)) return refuse("storage");
    for (const field of asked.fields) field.value = "";
    show();
    document.getElementById("kept").focus();
  });
  document.getElementById("erase").addEventListener("click", () => {
    eraseAnswers(place);
    show();
    asked.fields[0].focus();
  });
  show();
}
