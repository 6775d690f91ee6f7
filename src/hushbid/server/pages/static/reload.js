/** Looks again after a while, where something is under way. */
const place = document.querySelector("[data-reload]");
if (place) setTimeout(() => location.reload(), Number(place.dataset.reload));
