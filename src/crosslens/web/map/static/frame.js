/* Draws the points inside the sandboxed frame of the map page and reports what the pointer does.

   The frame has no origin, no cookies and no network: it only exchanges messages with the page that holds it. It is the
   only document that may evaluate strings, because regl, which regl-scatterplot draws with, compiles its drawing
   commands with Function(). A classic script, not a module: modules need an origin. */
"use strict";
(() => {
  const canvas = document.getElementById("canvas");
  const FAST_FRAME = 60; // milliseconds
  const FLUID_FRAME = 40; // milliseconds, while the view moves
  const FRAMES = 4; // measured before the sample changes its size
  const FEWEST_FOR_SAMPLE = 60000;
  const SMALLEST_SAMPLE = 2000;
  const LARGEST_SAMPLE = 100000;
  const SETTLED = 250; // milliseconds without movement
  let plot = null;
  let columns = null;
  let selected = [];
  let pointer = "mouse";
  let sample = null; // rows drawn while the view moves, where drawing all of them is slow
  let isMoving = false;
  let settle = 0;
  let lastMove = 0;
  let frames = []; // milliseconds of the last frames of this movement

  const tell = (message) => window.parent.postMessage(message, "*");
  const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

  // Later points cover earlier ones. The first rows are images: rows are drawn last to first, so that images are on top.
  const turned = (row) => columns.x.length - 1 - row;

  const drawnOnce = () => new Promise((resolve) => plot.subscribe("draw", resolve, 1));

  async function measureFrames(count) {
    const times = [];
    await nextFrame();
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      const drawn = drawnOnce();
      plot.redraw();
      await drawn;
      await nextFrame();
      await nextFrame();
      times.push(performance.now() - start);
    }
    return times;
  }

  async function chooseSample() {
    const count = columns.x.length;
    if (count < FEWEST_FOR_SAMPLE) return;
    const fastest = Math.min(...(await measureFrames(2)));
    if (fastest < FAST_FRAME) return;
    takeSample((count * FAST_FRAME) / 2 / fastest);
  }

  function takeSample(wanted) {
    const count = columns.x.length;
    const size = Math.round(Math.max(SMALLEST_SAMPLE, Math.min(LARGEST_SAMPLE, count, wanted)));
    sample = Array.from({ length: size }, (_, i) => Math.floor((i * count) / size));
  }

  // Graphics differ by a thousand times: what is drawn while the view moves follows from how long frames take.
  function adaptSample() {
    const median = frames.slice().sort((a, b) => a - b)[FRAMES / 2];
    frames = [];
    const before = sample.length;
    if (median > FLUID_FRAME) takeSample(before * Math.max(0.25, FLUID_FRAME / median / 1.3));
    else if (median < FLUID_FRAME / 2) takeSample(before * 1.5);
    if (sample.length !== before) plot.filter(sample, { preventEvent: true });
  }

  function moved() {
    if (!sample) return;
    clearTimeout(settle);
    settle = setTimeout(showAll, SETTLED);
    const now = performance.now();
    if (isMoving) {
      frames.push(now - lastMove);
      if (frames.length > FRAMES) adaptSample();
    } else {
      isMoving = true;
      frames = [];
      plot.filter(sample, { preventEvent: true });
    }
    lastMove = now;
  }

  async function showAll() {
    isMoving = false;
    await plot.unfilter({ preventEvent: true });
    if (selected.length) plot.select(selected, { preventEvent: true });
  }

  function create(theme) {
    // A tall frame needs more distance to show the whole width.
    const cameraDistance = 1.08 * Math.max(1, canvas.clientHeight / Math.max(1, canvas.clientWidth));
    plot = ReglScatterplot.createScatterplot({
      canvas,
      width: "auto",
      height: "auto",
      cameraDistance,
      backgroundColor: theme.background,
      pointColor: theme.palette,
      pointColorActive: theme.active,
      pointColorHover: theme.active,
      lassoColor: theme.active,
      colorBy: "valueA",
      pointSizeSelected: 5,
      lassoOnLongPress: false,
      showReticle: false,
      deselectOnDblClick: true,
      spatialIndexUseWorker: false,
    });
    plot.subscribe("pointover", (row) => {
      const [x, y] = plot.getScreenPosition(row) || [0, 0];
      tell({ type: "over", row: turned(row), x, y });
    });
    plot.subscribe("pointout", () => tell({ type: "out" }));
    plot.subscribe("select", ({ points }) => {
      selected = points;
      tell({ type: "selected", rows: Uint32Array.from(points, turned), pointer });
    });
    plot.subscribe("deselect", () => {
      selected = [];
      tell({ type: "selected", rows: new Uint32Array(0), pointer });
    });
    plot.subscribe("view", moved);
  }

  function sizeOf(count) {
    if (count <= 2000) return 7;
    if (count <= 20000) return 5;
    return count <= 200000 ? 3 : 1.5;
  }

  const opacityOf = (count) => (count <= 20000 ? 0.8 : count <= 200000 ? 0.5 : 0.3);

  const receive = {
    async points({ x, y, codes, theme }) {
      const start = performance.now();
      if (!plot) create(theme);
      columns = { x: x.reverse(), y: y.reverse() };
      const count = x.length;
      plot.set({ pointSize: sizeOf(count), opacity: opacityOf(count), performanceMode: false });
      await plot.draw({ x, y, valueA: codes.reverse() }, { zDataType: "categorical" });
      tell({ type: "drawn", milliseconds: performance.now() - start });
      await chooseSample();
      tell({ type: "ready", sampled: sample !== null });
    },
    async colours({ codes, theme }) {
      const start = performance.now();
      plot.set({ pointColor: theme.palette });
      await plot.draw(
        { x: columns.x, y: columns.y, valueA: codes.reverse() },
        { zDataType: "categorical", spatialIndex: plot.get("spatialIndex") },
      );
      if (selected.length) plot.select(selected, { preventEvent: true });
      tell({ type: "coloured", milliseconds: performance.now() - start });
    },
    theme({ theme }) {
      plot.set({
        backgroundColor: theme.background,
        pointColor: theme.palette,
        pointColorActive: theme.active,
        pointColorHover: theme.active,
        lassoColor: theme.active,
      });
    },
    select({ rows }) {
      selected = Array.from(rows, turned);
      if (selected.length) plot.select(selected, { preventEvent: true });
      else plot.deselect({ preventEvent: true });
    },
    mode({ mode }) {
      plot.set({ mouseMode: mode === "move" ? "panZoom" : "lasso", lassoType: mode === "box" ? "rectangle" : "freeform" });
    },
    async view({ area }) {
      if (!area) await plot.reset();
      else await plot.zoomToArea(area, { transition: true, transitionDuration: 300 });
      tell({ type: "viewed" });
    },
    async zoom({ factor }) {
      const [[left, bottom], [right, top]] = corners();
      const width = (right - left) / factor;
      const height = (top - bottom) / factor;
      await plot.zoomToArea(
        { x: (left + right - width) / 2, y: (bottom + top - height) / 2, width, height },
        { transition: true, transitionDuration: 150 },
      );
      tell({ type: "viewed" });
    },
    async measure({ count }) {
      // For benchmarks: frames while the view moves, as a person would see them.
      const times = [];
      for (let i = 0; i < count; i++) {
        const start = performance.now();
        const drawn = drawnOnce();
        plot.get("camera").pan([0.004, 0.002]);
        plot.redraw();
        moved();
        await drawn;
        await nextFrame();
        times.push(performance.now() - start);
      }
      tell({ type: "measured", times, sample: sample ? sample.length : columns.x.length });
    },
  };

  function corners() {
    const [x, y] = plot.get("cameraTarget");
    const distance = plot.get("cameraDistance");
    const ratio = canvas.clientWidth / canvas.clientHeight;
    return [[x - distance * ratio, y - distance], [x + distance * ratio, y + distance]];
  }

  canvas.addEventListener("pointerdown", (event) => { pointer = event.pointerType || "mouse"; }, true);
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || !receive[event.data.type]) return;
    Promise.resolve(receive[event.data.type](event.data)).catch((error) =>
      tell({ type: "failed", problem: String((error && error.message) || error) }),
    );
  });
  tell({ type: "loaded" });
})();
