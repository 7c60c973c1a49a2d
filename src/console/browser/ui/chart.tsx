import { useEffect, useRef, useState } from "preact/hooks";
import { dayName } from "../lib/time.ts";
import { useCell } from "../state/cell.ts";
import { scheme } from "../state/scheme.ts";
import type { PlotSeries } from "./plot.ts";

type Props = {
  /** Its description for screen readers: `Spend by day and model`. */
  readonly name: string;
  readonly days: readonly string[];
  readonly series: readonly (Omit<PlotSeries, "color"> & { readonly slot: number | null })[];
  readonly kind?: "bars" | "lines";
  readonly show: (value: number) => string;
  /** `series`: the place of the part that was clicked; undefined where a range was chosen. */
  readonly onSelect?: (from: string, to: string, series?: number) => void;
};
type Hover = { readonly index: number; readonly left: number };

const dark = matchMedia("(prefers-color-scheme: dark)");
const forced = matchMedia("(forced-colors: active)");

/** A chart by UTC day. A day shows its values, and a table has the same data. */
export function Chart(props: Props) {
  const { name, days, kind = "bars", show } = props;
  const place = useRef<HTMLDivElement>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const [asTable, setAsTable] = useState(false);
  const look = useLook();
  const drawn = JSON.stringify([days, props.series, kind]);
  useEffect(() => {
    const element = place.current;
    if (element === null || asTable) return undefined;
    let remove: (() => void) | undefined;
    let gone = false;
    const select = props.onSelect;
    const start = async (): Promise<void> => {
      const { draw } = await import("./plot.ts");
      if (gone) return;
      remove = draw(element, {
        days,
        series: props.series.map(({ slot, ...rest }) => ({
          ...rest,
          color: colorOf(`var(--series-${slot ?? "other"})`),
          ...(forced.matches && { tile: slot }),
        })),
        kind,
        text: colorOf("var(--muted)"),
        line: colorOf("var(--line)"),
        ground: colorOf("Canvas"),
        tick: show,
        name: dayName,
        onHover: setHover,
        onSelect: select && ((from, to, at) => select(days[from] ?? "", days[to] ?? "", at)),
      });
    };
    start().catch(() => setAsTable(true)); // numbers are better than nothing
    return () => {
      gone = true;
      remove?.();
    };
    // The drawn data decides whether it is another chart.
  }, [drawn, look, asTable]);
  return (
    <figure class="chart">
      {asTable ? (
        <ChartTable {...props} />
      ) : (
        <div class="plot" ref={place} role="img" aria-label={`${name}; the table says the same`}>
          {hover && <HoverBox {...props} at={hover} />}
        </div>
      )}
      <figcaption>
        <Names series={props.series} />
        <span class="small muted">Days are UTC.</span>
        <button type="button" class="quiet small" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Chart" : "Table"}
        </button>
      </figcaption>
    </figure>
  );
}

/** Changes whenever colors may have. */
function useLook(): string {
  const chosen = useCell(scheme);
  const [look, setLook] = useState(lookNow);
  useEffect(() => {
    const take = (): void => setLook(lookNow());
    for (const query of [dark, forced]) query.addEventListener("change", take);
    return () => {
      for (const query of [dark, forced]) query.removeEventListener("change", take);
    };
  }, []);
  return `${chosen} ${look}`;
}

const lookNow = (): string => `${dark.matches} ${forced.matches}`;

/** Returns a color of the current scheme for a canvas. */
function colorOf(css: string): string {
  const probe = document.createElement("i");
  probe.style.color = css;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A group's color beside its name. */
export function Swatch({ slot }: { slot: number | null }) {
  return <span class={`swatch slot-${slot ?? "other"}`} aria-hidden="true" />;
}

function Names({ series }: Pick<Props, "series">) {
  return (
    <span class="names">
      {series.map(({ label, slot }) => (
        <span key={label} class="small">
          <Swatch slot={slot} /> {label}
        </span>
      ))}
    </span>
  );
}

function HoverBox({ days, series, show, at, kind }: Props & { at: Hover }) {
  const values = series
    .map(({ label, slot, values: all }) => ({ label, slot, value: all[at.index] ?? null }))
    .filter(({ value }) => value !== null && (kind === "lines" || value > 0))
    .toSorted((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const sum = values.reduce((total, { value }) => total + (value ?? 0), 0);
  const toLeft = at.index > days.length / 2;
  return (
    <div
      class="hover"
      style={toLeft ? { right: `calc(100% - ${at.left + 56}px)` } : { left: `${at.left + 76}px` }}
    >
      <strong>{dayName(days[at.index] ?? "")}</strong>
      {values.map(({ label, slot, value }) => (
        <span key={label} class="hover-row">
          <span>
            <Swatch slot={slot} /> {label}
          </span>
          <span class="number">{show(value ?? 0)}</span>
        </span>
      ))}
      {kind !== "lines" && values.length !== 1 && (
        <span class="hover-row sum">
          <span>Sum</span>
          <span class="number">{show(sum)}</span>
        </span>
      )}
    </div>
  );
}

function ChartTable({ name, days, series, show }: Props) {
  return (
    <div class="table tall" role="region" aria-label={name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            {series.map(({ label }) => (
              <th key={label} scope="col" class="right">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.toReversed().map((day, i) => (
            <tr key={day}>
              <td>{dayName(day)}</td>
              {series.map(({ label, values }) => {
                const value = values[days.length - 1 - i] ?? null;
                return (
                  <td key={label} class="right number">
                    {value === null ? "" : show(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
