// Turns pointers, wheel and keys on a chart into a range of time: drag to choose one, pinch, drag by
// touch or with Shift to move, wheel with Control to zoom, arrows, + and -.

// scale(): of chart.js, as things are; change(from, to): a new range; mark([from, to] or null): the
// one that is being chosen; point(t or null): what is pointed at; reset(): everything.
export function follow(element, {scale, range, change, mark, point, reset}) {
  const pointers = new Map();
  let begun = null; // {x, t, range, moves}

  const xOf = (event) => event.clientX - element.getBoundingClientRect().left;
  const move = ([from, to], by) => change(from + by, to + by);
  function zoom([from, to], around, factor) {
    change(around - (around - from) * factor, around + (to - around) * factor);
  }

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, xOf(event));
    const moves = event.pointerType === "touch" || event.shiftKey;
    begun = {x: xOf(event), t: scale().t(xOf(event)), range: range(), moves, pinch: null};
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      begun.pinch = {distance: Math.abs(a - b) || 1, t: scale().t((a + b) / 2)};
    }
  });
  element.addEventListener("pointermove", (event) => {
    const x = xOf(event);
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, x);
    const {left, right, t} = scale();
    point(x >= left && x <= right ? t(x) : null);
    if (!begun) return;
    if (begun.pinch && pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      zoom(begun.range, begun.pinch.t, begun.pinch.distance / (Math.abs(a - b) || 1));
    } else if (begun.moves) {
      const [from, to] = begun.range;
      if (Math.abs(x - begun.x) > 3) move(begun.range, ((begun.x - x) / scale().inner) * (to - from));
    } else if (Math.abs(x - begun.x) > 4) {
      mark([begun.t, t(Math.min(right, Math.max(left, x)))]);
    }
  });
  function end(event) {
    pointers.delete(event.pointerId);
    if (!begun) return;
    const x = xOf(event);
    const isChoice = !begun.moves && !begun.pinch && Math.abs(x - begun.x) > 4;
    const {left, right, t} = scale();
    mark(null);
    if (isChoice && event.type === "pointerup") {
      const other = t(Math.min(right, Math.max(left, x)));
      change(Math.min(begun.t, other), Math.max(begun.t, other));
    }
    if (pointers.size === 0) begun = null;
  }
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => {
    if (!begun) point(null);
  });
  element.addEventListener("dblclick", reset);
  element.addEventListener(
    "wheel",
    (event) => {
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !isSideways) return;
      event.preventDefault();
      const [from, to] = range();
      if (event.ctrlKey) zoom(range(), scale().t(xOf(event)), event.deltaY > 0 ? 1.25 : 0.8);
      else move(range(), (event.deltaX / scale().inner) * (to - from));
    },
    {passive: false},
  );
  element.addEventListener("keydown", (event) => {
    const [from, to] = range();
    const keys = {
      ArrowLeft: () => move(range(), -(to - from) / 4),
      ArrowRight: () => move(range(), (to - from) / 4),
      "+": () => zoom(range(), (from + to) / 2, 0.5),
      "=": () => zoom(range(), (from + to) / 2, 0.5),
      "-": () => zoom(range(), (from + to) / 2, 2),
      0: reset,
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}
