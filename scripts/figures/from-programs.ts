import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod/mini";
import { lastWords, ROOT, runChild } from "./child.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { unmeasured } from "./rows.ts";

const said = z.object({
  figures: z.array(z.object({ name: z.string(), value: z.nullable(z.number()) })),
});
const packageJson = z.object({ scripts: z.record(z.string(), z.string()) });
const FIRST_BYTE_BUDGET_MS = 3;
const HOT_RISE_MAX_PERCENT = 20;
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
  const values = Object.fromEntries(figures);
  const [name, rise] =
    [...figures].find(([one]) => /\bp99\b/.test(one) && /\brise\b/.test(one)) ?? [];
  if (name === undefined || rise === undefined || Number.isNaN(rise)) {
    return unmeasured(16, "npm run hot-organization -- --json has no rise of p99");
  }
  const measured = `${rise < 0 ? "" : "+"}${rise.toFixed(1)} % (${name})`;
  return { row: 16, measured, isMet: rise <= HOT_RISE_MAX_PERCENT, values };
}

export const FROM_PROGRAMS: readonly Producer[] = [
  {
    rows: [10],
    what: "npm run bench",
    seconds: 130,
    produce: async () => [latencyFinding(await figuresOf("bench"))],
  },
  {
    rows: [11],
    what: "npm run bench -- --knee",
    seconds: 95,
    produce: async () => [kneeFinding(await figuresOf("bench", ["--knee"]))],
  },
  {
    rows: [16],
    what: "npm run hot-organization",
    seconds: 100,
    produce: async () => [hotFinding(await figuresOf("hot-organization"))],
  },
];

/** Runs one of package.json's programs with `--json` and reads what it prints. */
export async function figuresOf(
  program: string,
  options: readonly string[] = [],
): Promise<Figures> {
  const { scripts } = packageJson.parse(
    JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")),
  );
  if (scripts[program] === undefined) throw new Error(`there is no npm run ${program}`);
  const parameters = ["run", "--silent", program, "--", ...options, "--json"];
  const ended = await runChild("npm", parameters);
  if (ended.code !== 0) throw new Error(`npm run ${program} failed: ${lastWords(ended)}`);
  return readFigures(ended.stdout);
}

function kneeInWords(rate: number, p50: number, p99: number): string {
  return `${Math.round(rate)} req/s (p50 ${inWords(p50)}, p99 ${inWords(p99)} ms)`;
}

function inWords(value: number): string {
  return Number.isNaN(value) ? "?" : value.toFixed(Math.abs(value) >= 100 ? 0 : 1);
}
