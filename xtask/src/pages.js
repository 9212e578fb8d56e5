// Finds text that collides, is cut, or lies outside of the page, in each frame of this page.
const visibleParts = (window, element) => {
  // What can be seen now; and what can be seen at all, wherever the reader scrolls.
  const parts = [0, 1].map(() => ({ left: -1e9, right: 1e9, top: -1e9, bottom: 1e9 }));
  for (let at = element; at; at = at.parentElement) {
    const style = window.getComputedStyle(at);
    if (style.overflowX === "visible" && style.overflowY === "visible") continue;
    if (at === window.document.body || at === window.document.documentElement) continue;
    const box = at.getBoundingClientRect();
    for (const part of /auto|scroll/.test(style.overflowX) ? parts.slice(0, 1) : parts) {
      part.left = Math.max(part.left, box.left);
      part.right = Math.min(part.right, box.right);
      part.top = Math.max(part.top, box.top);
      part.bottom = Math.min(part.bottom, box.bottom);
    }
    // Beyond what scrolls, nothing says where its content will be.
    if (/auto|scroll/.test(style.overflowX)) break;
  }
  return parts;
};

const exceeds = (box, part) =>
  part.left - 1 > box.left || box.right > part.right + 1 ||
  part.top - 2 > box.top || box.bottom > part.bottom + 2;

// The boxes of all text that can be seen, and what is wrong with a box by itself.
const boxes = (window, found) => {
  const all = [];
  const walk = window.document.createTreeWalker(window.document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    const text = walk.currentNode.data.trim().slice(0, 50);
    if (!text || element.closest("title, script, style") || !element.checkVisibility()) continue;
    const [now, ever] = visibleParts(window, element);
    const range = window.document.createRange();
    range.selectNodeContents(walk.currentNode);
    for (const box of range.getClientRects()) {
      if (1 > box.width || 1 > box.height) continue;
      if (exceeds(box, ever)) found.add(`cut: ${text}`);
      if (exceeds(box, now)) continue;
      if (0 > box.left || box.right > window.innerWidth + 1) found.add(`outside: ${text}`);
      const margin = Math.min(3, box.height / 5);
      all.push({ box, text, top: box.top + margin, bottom: box.bottom - margin });
    }
  }
  return all.sort((a, b) => a.top - b.top);
};

const findings = (window) => {
  const found = new Set();
  const all = boxes(window, found);
  all.forEach((one, at) => {
    for (const other of all.slice(at + 1)) {
      if (other.top >= one.bottom) break;
      const apart = one.box.left >= other.box.right - 1 || other.box.left >= one.box.right - 1;
      if (!apart) found.add(`collide: ${one.text} / ${other.text}`);
    }
  });
  const root = window.document.documentElement;
  if (root.scrollWidth > window.innerWidth + 1) found.add("the page scrolls sideways");
  return [all.length, ...found];
};

addEventListener("load", () => setTimeout(() => {
  const all = [...document.querySelectorAll("iframe")].map((frame) => {
    const [texts, ...found] = findings(frame.contentWindow);
    return [`${frame.title}: ${texts} texts, ${found.length} findings`, ...found].join("\n  ");
  });
  document.querySelector("pre").textContent = all.join("\n") + "\n";
}, 500));
