// Zooms and scrolls the timeline. The page shows the same without: times are percentages of their
// stretch, and one width (--scale, in pixels per microsecond) says how long a stretch is.
(() => {
  "use strict";
  const film = document.querySelector(".film");
  if (!film) return;
  const overview = document.querySelector(".overview");
  const view = overview.querySelector(".view");
  const end = Number(overview.dataset.end);
  const parts = [...film.querySelectorAll(".stretch")].map((element) => ({
    element,
    from: Number(element.dataset.from),
    length: Number(element.dataset.length),
  }));
  const shortest = Math.min(...parts.map((part) => part.length));
  const spots = [...film.querySelectorAll(".spot")];
  let scale = Number(film.dataset.scale);

  // Where an instant is in the film, in pixels; between stretches, the edge of the next one.
  const place = (ns) => {
    for (const { element, from, length } of parts) {
      if (from + length >= ns) {
        const share = Math.max(0, (ns - from) / length);
        return element.offsetLeft + share * element.offsetWidth;
      }
    }
    return film.scrollWidth;
  };
  // The instant that is there.
  const instant = (x) => {
    let last = parts[0].from;
    for (const { element, from, length } of parts) {
      const share = (x - element.offsetLeft) / element.offsetWidth;
      if (1 >= share) return share >= 0 ? from + share * length : last;
      last = from + length;
    }
    return last;
  };
  // As the page writes instants: exact, in the largest unit that is not above them.
  const words = (ns) => {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
    const [unit, name] = units.find(([unit]) => ns >= unit) || [1, "s"];
    return Number((ns / unit).toPrecision(12)) + name;
  };
  const made = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const axis = ({ element, from, length }) => {
    const [left, width] = [element.offsetLeft, element.offsetWidth];
    const visible = (x) => from + Math.min(1, Math.max(0, (x - left) / width)) * length;
    const [first, last] = [visible(film.scrollLeft), visible(film.scrollLeft + film.clientWidth)];
    const least = (length / width) * 110;
    let step = 10 ** Math.floor(Math.log10(least));
    step *= [1, 2, 5, 10].find((times) => step * times >= least);
    step = Math.max(1, step);
    const height = element.querySelector("svg").getAttribute("height");
    const ticks = [];
    for (let at = Math.ceil(first / step) * step; last >= at; at += step) {
      const x = (100 * (at - from)) / length + "%";
      ticks.push(made("line", { x1: x, x2: x, y2: height }));
      // A label stands on the right of its line, and needs room there.
      const room = Math.min(from + length, visible(film.scrollLeft + film.clientWidth)) - at;
      if (room * (width / length) >= 60) {
        const text = made("text", { x, dx: 4, y: height - 4 });
        text.textContent = words(at);
        ticks.push(text);
      }
    }
    element.querySelector(".ticks").replaceChildren(...ticks);
  };
  const shown = () => [film.scrollLeft, film.scrollLeft + film.clientWidth].map(instant);
  let waiting = false;
  const redraw = () => {
    waiting = false;
    const [from, to] = shown();
    view.style.left = (100 * from) / end + "%";
    view.style.width = (100 * (to - from)) / end + "%";
    const [left, right] = [film.scrollLeft, film.scrollLeft + film.clientWidth];
    for (const part of parts) {
      const x = part.element.offsetLeft;
      if (right >= x && x + part.element.offsetWidth >= left) axis(part);
      else part.element.querySelector(".ticks").replaceChildren();
    }
  };
  const later = () => {
    if (!waiting) requestAnimationFrame(redraw);
    waiting = true;
  };
  // Stretches stay below eight million pixels, and a nanosecond below ten.
  const all = parts.reduce((sum, part) => sum + part.length, 0) / 1e3;
  const zoom = (wanted) => {
    const least = Math.min(Number(film.dataset.scale), film.clientWidth / all);
    scale = Math.min(Math.max(wanted, least), 8e6 / all, 1e4);
    film.style.setProperty("--scale", scale);
  };
  const show = (from, to) => {
    zoom((film.clientWidth * 1e3) / Math.max(to - from, 1));
    film.scrollLeft = place(from);
    later();
  };
  const closer = (times) => {
    const middle = film.clientWidth / 2;
    const at = instant(film.scrollLeft + middle);
    zoom(scale * times);
    film.scrollLeft = place(at) - middle;
    later();
  };
  const aside = (share) => film.scrollBy({ left: share * film.clientWidth });
  // A miss in the middle, its job over half of the width.
  const open = (spot) => {
    for (const other of spots) other.classList.toggle("open", other === spot);
    const part = parts.find((part) => part.element === spot.parentElement);
    const [left, width] = [spot.style.left, spot.style.width].map(parseFloat);
    const at = part.from + (left / 100) * part.length;
    const length = Math.max((width / 100) * part.length, shortest / 1e5);
    show(at - length / 2, at + length * 1.5);
  };
  const miss = (step) => {
    const middle = film.scrollLeft + film.clientWidth / 2;
    const places = spots.map((spot) => {
      const box = spot.getBoundingClientRect();
      return box.left - film.getBoundingClientRect().left + film.scrollLeft + box.width / 2;
    });
    const order = spots.map((_, at) => at).sort((a, b) => places[a] - places[b]);
    const beyond = (at) => step * (places[at] - middle) > 2;
    const next = step > 0 ? order.find(beyond) : order.reverse().find(beyond);
    if (next !== undefined) open(spots[next]);
  };
  const actions = {
    earlier: () => aside(-0.5),
    later: () => aside(0.5),
    in: () => closer(2),
    out: () => closer(0.5),
    previous: () => miss(-1),
    next: () => miss(1),
  };
  film.classList.add("live");
  const tools = document.querySelector(".tools");
  tools.hidden = false;
  for (const button of tools.querySelectorAll("button")) {
    button.addEventListener("click", actions[button.dataset.do]);
    button.disabled = /previous|next/.test(button.dataset.do) && spots.length === 0;
  }
  const keys = { "+": "in", "=": "in", "-": "out", p: "previous", n: "next" };
  film.addEventListener("keydown", (event) => {
    const action = actions[keys[event.key]];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  film.addEventListener("scroll", later);
  addEventListener("resize", later);

  // A drag over the whole run chooses what is shown, a click moves there.
  const share = (event) => {
    const box = overview.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  let start = null;
  overview.addEventListener("pointerdown", (event) => {
    start = share(event);
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const now = share(event);
    view.style.left = 100 * Math.min(start, now) + "%";
    view.style.width = 100 * Math.abs(now - start) + "%";
  });
  overview.addEventListener("pointerup", (event) => {
    const [from, to] = [start, share(event)].sort((a, b) => a - b);
    start = null;
    if ((to - from) * overview.clientWidth >= 4) return show(from * end, to * end);
    const [left, right] = shown();
    const half = (right - left) / 2;
    show(to * end - half, to * end + half);
  });
  overview.addEventListener("pointercancel", () => {
    start = null;
    later();
  });

  const target = () => spots.find((spot) => "#" + spot.id === location.hash);
  const follow = () => target() && open(target());
  addEventListener("hashchange", follow);
  for (const link of document.querySelectorAll('a[href^="#miss-"]')) {
    // Also when it is the target already, and the reader has moved away.
    link.addEventListener("click", () => setTimeout(follow));
  }
  if (target()) follow();
  else show(Number(film.dataset.from), Number(film.dataset.to));
})();
