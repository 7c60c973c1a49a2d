import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  CHART_BOTTOM_Y,
  CHART_HEIGHT,
  CHART_RIGHT_MARGIN,
  CHART_TOP_Y,
  layOutChart,
} from "../lib/plot-shape.ts";
import type { PlotData, PlotShape } from "../lib/plot-shape.ts";
import { dayName } from "../lib/time.ts";

export type PlotProps = PlotData & {
  readonly name: string;
  readonly describe: (index: number) => string;
  readonly onRead: (at: { readonly index: number; readonly x: number } | null) => void;
  /** Receives a clicked column and series, or a dragged range of columns. */
  readonly onSelect?: ((from: number, to: number, series?: number) => void) | undefined;
};

const FONT = "12px system-ui, sans-serif";
const textContext = document.createElement("canvas").getContext("2d");

function widthOf(text: string): number {
  if (textContext === null) return text.length * 8;
  textContext.font = FONT;
  return Math.ceil(textContext.measureText(text).width);
}

/** A chart of stacked bars, lines with gaps, or steps. Pointer and keyboard select columns. */
export function Plot(props: PlotProps) {
  const { name, days } = props;
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const shape = useMemo(() => layOutChart(props, width, widthOf), [props.series, days, width]);
  const { read, dragged, ...handlers } = useColumnPointer(props, place, shape);
  const now = Math.min(read ?? days.length - 1, days.length - 1);
  return (
    <div
      class="plot"
      ref={place}
      role="slider"
      tabIndex={0}
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={days.length - 1}
      aria-valuenow={now}
      aria-valuetext={props.describe(now)}
      {...handlers}
    >
      {width > 0 && (
        <Drawing {...props} shape={shape} width={width} read={read} dragged={dragged} />
      )}
    </div>
  );
}

type Place = { readonly current: HTMLDivElement | null };

function useWidth(place: Place): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const sizes = new ResizeObserver(() => setWidth(element.clientWidth));
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  return width;
}

function useColumnPointer({ days, onRead, onSelect }: PlotProps, place: Place, shape: PlotShape) {
  const [read, setRead] = useState<number | null>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const last = days.length - 1;
  const go = (index: number | null): void => {
    setRead(index);
    onRead(index === null ? null : { index, x: shape.left + (index + 0.5) * shape.column });
  };
  const pointOf = ({ clientX, clientY }: PointerEvent) => {
    const { left = 0, top = 0 } = place.current?.getBoundingClientRect() ?? {};
    const index = Math.floor((clientX - left - shape.left) / shape.column);
    return { index: Math.max(0, Math.min(last, index)), y: clientY - top };
  };
  const release = (event: PointerEvent): void => {
    setDragged(null);
    if (dragged === null) return;
    const { index, y } = pointOf(event);
    const mark = shape.marks.find(
      (one) => one.index === index && y >= one.top - 1 && y <= one.top + one.height,
    );
    const part = index === dragged ? mark?.series : undefined;
    onSelect?.(Math.min(index, dragged), Math.max(index, dragged), part);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && read !== null) onSelect?.(read, read);
    const next = nextIndex(event.key, read, last);
    if (next === undefined) return;
    event.preventDefault();
    go(next);
  };
  return {
    read: read !== null && read <= last ? read : null,
    dragged,
    onPointerMove: (event: PointerEvent) => go(pointOf(event).index),
    onPointerLeave: () => (go(null), setDragged(null)),
    onPointerDown: (event: PointerEvent) => event.button === 0 && setDragged(pointOf(event).index),
    onPointerUp: release,
    onKeyDown: press,
    onFocus: () => place.current?.matches(":focus-visible") === true && go(last),
    onBlur: () => go(null),
  };
}

function nextIndex(key: string, read: number | null, last: number): number | null | undefined {
  const at = read ?? last;
  if (key === "ArrowLeft") return Math.max(0, at - 1);
  if (key === "ArrowRight") return Math.min(last, at + 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return key === "Escape" && read !== null ? null : undefined;
}

function Drawing({
  days,
  series,
  shape: { left, column, bar, ...shape },
  width,
  read,
  dragged,
}: PlotProps & { shape: PlotShape; width: number; read: number | null; dragged: number | null }) {
  const x = (index: number): number => left + (index + 0.5) * column;
  const first = Math.min(dragged ?? read ?? 0, read ?? 0);
  return (
    <svg viewBox={`0 0 ${width} ${CHART_HEIGHT}`} aria-hidden="true">
      {shape.ticks.map(({ y, text }) => (
        <g key={text}>
          <path class="grid" d={`M${left} ${y}H${width - CHART_RIGHT_MARGIN}`} />
          <text class="y" x={left - 8} y={y + 4} children={text} />
        </g>
      ))}
      {read !== null && (
        <rect
          class="read"
          x={left + first * column}
          y={CHART_TOP_Y}
          width={column * (1 + Math.abs((dragged ?? read) - read))}
          height={CHART_BOTTOM_Y - CHART_TOP_Y}
        />
      )}
      {days.map((day, i) =>
        i % shape.every === 0 ? (
          <text
            key={day}
            class="x"
            x={clampLabel(x(i), dayName(day), width)}
            y={CHART_HEIGHT - 6}
            children={dayName(day)}
          />
        ) : null,
      )}
      {shape.marks.map(({ index, series: at, top, height }) => (
        <rect
          key={`${at} ${index}`}
          class={`series-${series[at]?.slot ?? "other"}`}
          x={x(index) - bar / 2}
          y={top}
          width={bar}
          height={height}
        />
      ))}
      {shape.paths.map(({ slot, d, dots }, i) => (
        <g key={i} class={`line line-${slot ?? "other"}`}>
          <path d={d} />
          <path class="dots" d={dots} />
        </g>
      ))}
      {shape.breaks.map((index) => (
        <path
          key={index}
          class="break-mark"
          d={`M${x(index) - bar / 2 - 3} ${CHART_TOP_Y + 16}l${bar + 6} -6`}
        />
      ))}
      {shape.numbers.map(({ index, y, text }) => (
        <text
          key={index}
          class="x strong"
          x={clampLabel(x(index), text, width)}
          y={y}
          children={text}
        />
      ))}
    </svg>
  );
}

function clampLabel(middle: number, text: string, width: number): number {
  const half = widthOf(text) / 2 + 1;
  return Math.max(half, Math.min(width - half, middle));
}
