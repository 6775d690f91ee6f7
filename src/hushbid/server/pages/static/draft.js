/** The look ahead of a draft, as one types: the same numbers that the button gives, a moment after the last change. */
const form = document.getElementById("draft");
const panel = document.getElementById("preview");
const note = document.getElementById("preview-note");
let timer = 0;
let asking = null;

async function look() {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  note.textContent = panel.dataset.busy;
  panel.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch("/campaigns/preview", {
      method: "POST",
      headers: { Accept: "application/json" },
      body: new URLSearchParams(new FormData(form)),
      signal,
    });
    if (!answer.ok) throw new Error("refused");
    const { problem, texts } = await answer.json();
    for (const place of panel.querySelectorAll("[data-shows]")) place.textContent = texts[place.dataset.shows] ?? "–";
    note.textContent = problem ?? texts.basis;
    document.getElementById("preview-ceiling").textContent = texts.ceiling ?? "";
    for (const old of document.querySelectorAll(".preview-picture")) old.hidden = true;
  } catch (error) {
    if (error.name === "AbortError") return;
    note.textContent = panel.dataset.failed;
  }
  panel.removeAttribute("aria-busy");
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(look, 600);
}

form.addEventListener("input", later);
