import * as z from "zod/mini";
import { RISE_PERCENT_MAX } from "../bench/hot.ts";
import { lastWords, runChild } from "./programs.ts";
import { unmeasured } from "./table.ts";
import type { Finding, Producer } from "./table.ts";

const said = z.object({
  figures: z.array(z.object({ name: z.string(), value: z.nullable(z.number()) })),
});
const FIRST_BYTE_BUDGET_MS = 3;
/** Medians over the pairs in ms, and that of the pairs' own rises. */
type Rise = { readonly without: number; readonly with: number; readonly risePercent: number };
const HOT_PAIRS = 5;
const PLACES = ["home", "peer"] as const;
const KINDS = { JSON: ["total"], stream: ["first byte", "total"] } as const;
const SHARES = ["p50", "p99"] as const;

/** Figures by their names, as `npm run bench -- --json` and its like print them; unknown ones are NaN. */
export type Figures = ReadonlyMap<string, number>;

/** The figures of such a program's standard output. Throws when it is none. */
export function readFigures(text: string): Figures {
  const { figures } = said.parse(JSON.parse(text));
  return new Map(figures.map(({ name, value }) => [name, value ?? NaN]));
}

/** Row 10: what the gateway adds to an upstream that is asked directly, at home and at a peer, in ms. */
export function latencyFinding(figures: Figures): Finding {
  const values: Record<string, number> = {};
  const places = PLACES.map((place) => {
    const parts = Object.entries(KINDS).flatMap(([kind, moments]) =>
      moments.map((moment) => {
        const times = SHARES.map((share) => {
          const name = `${place}: ${kind}, ${moment}, ${share}, over direct`;
          const value = figures.get(name) ?? NaN;
          values[name] = value;
          return inWords(value);
        });
        return `${kind}${kind === "JSON" ? "" : ` ${moment}`} ${times.join(" / ")}`;
      }),
    );
    return `${place}: ${parts.join(", ")}`;
  });
  const firstByte = values["home: stream, first byte, p50, over direct"] ?? NaN;
  if (Object.values(values).every(Number.isNaN)) {
    return unmeasured(10, "npm run bench -- --json has no time over direct");
  }
  return {
    row: 10,
    measured: `p50 / p99 in ms, ${places.join("; ")}`,
    isMet: Number.isNaN(firstByte) ? null : firstByte <= FIRST_BYTE_BUDGET_MS,
    values,
  };
}

/** Row 11: completions a second before the queue grows, of one organisation and of many. */
export function kneeFinding(figures: Figures): Finding {
  const of = (name: string): number => figures.get(name) ?? NaN;
  const values = {
    all: of("knee in all, rate"),
    allP50: of("knee in all, p50 at it"),
    allP99: of("knee in all, p99 at it"),
    one: of("knee of one organisation, rate"),
    oneP50: of("knee of one organisation, p50 at it"),
    oneP99: of("knee of one organisation, p99 at it"),
  };
  if (Number.isNaN(values.all) || Number.isNaN(values.one)) {
    return unmeasured(11, "npm run bench -- --knee --json has no knee");
  }
  return {
    row: 11,
    measured: `${kneeInWords(values.all, values.allP50, values.allP99)} in all; ${kneeInWords(values.one, values.oneP50, values.oneP99)} of one organisation; load and upstream on the same machine`,
    isMet: null,
    values,
  };
}

/** Row 16: by how much the p99 of other organisations rises beside one that asks for far too much. */
export function hotFinding(figures: Figures): Finding {
  const shed = figures.get("hot one's shed") ?? NaN;
  const rises = ["first byte", "total"].map((moment) => {
    const of = (what: string): number => figures.get(`others' ${moment}, p99, ${what}`) ?? NaN;
    return { without: of("alone"), with: of("beside"), risePercent: of("rise") };
  });
  const [firstByte = NaN, total = NaN] = rises.map(({ risePercent }) => risePercent);
  if (Number.isNaN(firstByte + total + shed)) {
    return unmeasured(16, "npm run bench -- --hot --json has no rise");
  }
  const [first, whole] = rises.map(riseInWords);
  const served = figures.get("others not served") === 0;
  return {
    row: 16,
    measured: `first byte ${first}, whole ${whole}; median of ${HOT_PAIRS} paired runs, ${Math.round(shed)} % of the hot one's shed`,
    isMet: Math.max(firstByte, total) <= RISE_PERCENT_MAX && served && shed > 0,
    values: { firstByteRisePercent: firstByte, totalRisePercent: total, hotShedPercent: shed },
  };
}

export const FROM_BENCH: readonly Producer[] = [
  fromBench(10, 130, [], latencyFinding),
  fromBench(11, 95, ["--knee"], kneeFinding),
  fromBench(16, 160, ["--hot", "--rounds", String(HOT_PAIRS), "--seconds", "8"], hotFinding),
];

/** A row that a mode of the bench measures. */
function fromBench(
  row: number,
  seconds: number,
  options: readonly string[],
  read: (figures: Figures) => Finding,
): Producer {
  return {
    rows: [row],
    what: ["npm run bench --", ...options].join(" "),
    seconds,
    produce: async () => [read(readFigures(await outputOf(options)))],
  };
}

/** What the bench prints with `--json`. One that ends with 1 has missed its own budget: it is read all the same. */
async function outputOf(options: readonly string[]): Promise<string> {
  const ended = await runChild("npm", ["run", "--silent", "bench", "--", ...options, "--json"]);
  const isRead = ended.code === 0 || (ended.code === 1 && ended.stdout.startsWith("{"));
  if (!isRead) throw new Error(`npm run bench failed: ${lastWords(ended)}`);
  return ended.stdout;
}

function riseInWords({ without, with: beside, risePercent }: Rise): string {
  const sign = risePercent < 0 ? "" : "+";
  return `${sign}${risePercent.toFixed(1)} % (${inWords(without)} to ${inWords(beside)} ms)`;
}

function kneeInWords(rate: number, p50: number, p99: number): string {
  return `${Math.round(rate)} req/s (p50 ${inWords(p50)}, p99 ${inWords(p99)} ms)`;
}

function inWords(value: number): string {
  return Number.isNaN(value) ? "?" : value.toFixed(Math.abs(value) >= 100 ? 0 : 1);
}
