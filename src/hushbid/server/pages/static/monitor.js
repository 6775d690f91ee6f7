/** Keeps the monitor up to date: numbers in place, and the page anew when the campaign has moved on. */
const monitor = document.getElementById("monitor");
const { pulse, state, job } = monitor.dataset;
const slowest = 2000;
let every = job === "running" ? 125 : slowest; // most steps take a moment: look soon, then less and less often

async function look() {
  try {
    const answer = await fetch(pulse, { headers: { Accept: "application/json" } });
    if (answer.status === 401) return location.reload();
    if (answer.ok) {
      const found = await answer.json();
      if (found.state !== state || (found.job ?? "") !== job) return location.reload();
      for (const place of document.querySelectorAll("[data-shows]")) {
        const text = found.texts[place.dataset.shows];
        if (text !== undefined && place.textContent !== text) place.textContent = text;
      }
      draw(found.people);
    }
  } catch {
    // the server may be starting again: ask later
  }
  every = Math.min(2 * every, slowest);
  setTimeout(look, every);
}

function draw(people) {
  const total = Math.max(Object.values(people).reduce((sum, count) => sum + count, 0), 1);
  let x = 0;
  for (const part of monitor.querySelectorAll("[data-state]")) {
    const width = (600 * (people[part.dataset.state] ?? 0)) / total;
    part.setAttribute("x", x);
    part.setAttribute("width", width);
    x += width;
  }
}

for (const element of document.querySelectorAll(".with-script")) element.hidden = false;
setTimeout(look, every);
