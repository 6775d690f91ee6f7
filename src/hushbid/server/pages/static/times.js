/** Writes the time where the reader is behind each time in UTC. */
const { lang, dataset } = document.documentElement;
const here = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeStyle: "short" });

for (const element of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(element.dateTime);
  if (Number.isNaN(moment.getTime()) || moment.getTimezoneOffset() === 0) continue;
  element.append(` (${dataset.here.replace("{time}", here.format(moment))})`);
}
