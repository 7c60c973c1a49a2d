import uPlot from "uplot";

export type PlotSeries = {
  readonly label: string;
  readonly color: string;
  /** The tile that fills it if the reader chooses the colors; null: the one of all others. */
  readonly tile?: number | null;
  readonly values: readonly (number | null)[];
};
type Plot = {
  readonly days: readonly string[];
  readonly series: readonly PlotSeries[];
  readonly kind: "bars" | "lines";
  /** Colors of the axes' words and of the grid. */
  readonly text: string;
  readonly line: string;
  readonly ground: string;
  readonly tick: (value: number) => string;
  readonly name: (day: string) => string;
  readonly onHover: (at: { readonly index: number; readonly left: number } | null) => void;
  /** A click selects one day, and the series of the bar's part, a drag a range. */
  readonly onSelect?: ((from: number, to: number, series?: number) => void) | undefined;
};

/** Draws into `element`: bars stacked from zero, or lines with gaps. Returns how to remove it. */
export function draw(element: HTMLElement, plot: Plot): () => void {
  const { days, series, kind, onSelect } = plot;
  const heights = kind === "bars" ? sums(series, days.length) : series.map(({ values }) => values);
  const order = heights.map((_, i) => i);
  if (kind === "bars") order.reverse(); // the highest sum first, so that the lower ones stand before it
  const size = (): { width: number; height: number } => ({
    width: element.clientWidth,
    height: element.clientHeight,
  });
  const data = [days.map((_, i) => i), ...order.map((i) => heights[i] ?? [])];
  const chart = new uPlot(
    {
      ...size(),
      padding: [12, 8, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: onSelect !== undefined, y: false, setScale: false },
      },
      scales: {
        x: { time: false, range: (_u, min, max) => [min - 0.6, max + 0.6] },
        y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: axesOf(plot),
      series: [{}, ...order.map((i) => seriesOf(series[i], plot))],
      hooks: hooksOf(plot),
    },
    data as uPlot.AlignedData,
    element,
  );
  chart.over.addEventListener("click", () => {
    const { idx, top = 0 } = chart.cursor;
    if (typeof idx !== "number") return;
    const value = chart.posToVal(top, "y");
    const part = kind === "bars" ? heights.findIndex((sum) => value <= (sum[idx] ?? 0)) : -1;
    onSelect?.(idx, idx, part === -1 ? undefined : part);
  });
  const sizes = new ResizeObserver(() => chart.setSize(size()));
  sizes.observe(element);
  return () => {
    sizes.disconnect();
    chart.destroy();
  };
}

function axesOf({ days, name, tick, text, line }: Plot): uPlot.Axis[] {
  const axis = {
    stroke: text,
    font: "12px system-ui, sans-serif",
    ticks: { show: false },
  };
  return [
    {
      ...axis,
      size: 28,
      grid: { show: false },
      incrs: [1, 2, 5, 7, 14, 30],
      values: (_u, at) => at.map((i) => (days[i] === undefined ? "" : name(days[i]))),
    },
    {
      ...axis,
      size: 64,
      grid: { stroke: line, width: 1 },
      values: (_u, at) => at.map((value) => tick(value)),
    },
  ];
}

function hooksOf({ days, onHover, onSelect }: Plot): uPlot.Hooks.Arrays {
  return {
    setCursor: [
      ({ cursor: { idx, left = -1 } }) =>
        onHover(idx === null || idx === undefined || left < 0 ? null : { index: idx, left }),
    ],
    setSelect: [
      (u) => {
        const at = (pixel: number): number =>
          Math.max(0, Math.min(days.length - 1, Math.round(u.posToVal(pixel, "x"))));
        const { left, width } = u.select;
        if (width > 2) onSelect?.(at(left), at(left + width));
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      },
    ],
  };
}

function seriesOf(series: PlotSeries | undefined, { kind, ground }: Plot): uPlot.Series {
  const { color = "", label = "", tile } = series ?? {};
  if (kind === "lines") {
    const dash = tile === undefined ? [] : [2 + 3 * (tile ?? TILES.length), 3];
    return { label, stroke: color, width: 2, dash, points: { size: 5, fill: color } };
  }
  const paths = uPlot.paths.bars?.({ size: [0.72, 48], radius: 0 });
  const filled = { label, points: { show: false }, ...(paths && { paths }) };
  if (tile === undefined) return { ...filled, fill: color, width: 0 };
  const fill = tileOf(tile, color, ground) ?? color;
  return { ...filled, fill: () => fill, stroke: color, width: 1 };
}

/** Lines of a tile of 8 by 8: from x, y to x, y. The first is all ink, the second none; dots are of all others. */
const TILES: readonly (readonly (readonly [number, number, number, number])[])[] = [
  [[0, 4, 8, 4]],
  [],
  [[0, 8, 8, 0]],
  [[0, 0, 8, 8]],
  [[0, 4, 8, 4]],
  [[4, 0, 4, 8]],
  [
    [0, 4, 8, 4],
    [4, 0, 4, 8],
  ],
  [[0, 0, 8, 8]],
];
const DOTS = [[3, 4, 5, 4]] as const;
/** The line width of a tile, by default 1. */
const THICK: Readonly<Record<number, number>> = { 0: 8, 7: 4 };

function tileOf(tile: number | null, ink: string, ground: string): CanvasPattern | null {
  const canvas = document.createElement("canvas");
  canvas.width = 8;
  canvas.height = 8;
  const pen = canvas.getContext("2d");
  if (pen === null) return null;
  pen.fillStyle = ground;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = ink;
  pen.lineWidth = THICK[tile ?? -1] ?? 1;
  for (const [x, y, toX, toY] of (tile === null ? DOTS : TILES[tile]) ?? []) {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
    pen.stroke();
  }
  return pen.createPattern(canvas, "repeat");
}

function sums(series: readonly PlotSeries[], length: number): number[][] {
  const below = Array.from({ length }, () => 0);
  return series.map(({ values }) =>
    values.map((value, i) => (below[i] = (below[i] ?? 0) + (value ?? 0))),
  );
}
