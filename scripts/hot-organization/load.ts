// The load of npm run hot-organization, in a process of its own: requests at constant rates, sent when they
// are due whatever became of those before (an open loop), timed from then on. Started with fork(); each
// message is a plan, each answer what came of it; ends with its parent.
import { Agent, request as httpRequest } from "node:http";

/** One organisation's share of a plan. */
export type Group = {
  readonly keys: readonly string[];
  readonly perSecond: number;
  /** Words a stream has; 0 asks for JSON. */
  readonly words: number;
  /** Its answers are timed; otherwise only counted. */
  readonly isTimed: boolean;
};
/** `url` ends in /chat/completions; nothing that is due within the first `rampMs` counts. */
export type Plan = {
  readonly model: string;
  readonly url: string;
  readonly groups: readonly Group[];
  readonly rampMs: number;
  readonly measureMs: number;
};
/** Ms from when a request was due, of those that were served; the others by status, 0 for none. */
export type Outcome = {
  readonly firstByteMs: number[];
  readonly totalMs: number[];
  readonly timedStatuses: Record<string, number>;
  readonly untimedStatuses: Record<string, number>;
};
type Due = { readonly atMs: number; readonly group: Group; readonly key: string };

const agent = new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: "fifo" });
const TICK_MS = 2;
const prompt = [{ role: "user", content: "Why is the sky blue? ".repeat(4) }];

process.on("message", (plan: Plan) => {
  void carriedOut(plan).then((outcome) => process.send?.(outcome));
});
process.on("disconnect", () => process.exit(0));

async function carriedOut(plan: Plan): Promise<Outcome> {
  const outcome: Outcome = {
    firstByteMs: [],
    totalMs: [],
    timedStatuses: {},
    untimedStatuses: {},
  };
  const bodies = new Map(plan.groups.map((group) => [group, bodyOf(group, plan.model)]));
  const due = schedule(plan);
  const begunAt = performance.now();
  const pending: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    let next = 0;
    const timer = setInterval(() => {
      const nowMs = performance.now() - begunAt;
      for (let one = due[next]; one !== undefined && one.atMs <= nowMs; one = due[++next]) {
        const isCounted = one.atMs >= plan.rampMs;
        const body = bodies.get(one.group) ?? "";
        pending.push(sent(plan.url, one, { body, begunAt, outcome: isCounted ? outcome : null }));
      }
      if (next < due.length) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  await Promise.all(pending);
  return outcome;
}

/** Every request of the plan in order of time; organisations of one rate are spread over its period. */
function schedule({ groups, rampMs, measureMs }: Plan): Due[] {
  const due = groups.flatMap((group, at) => {
    const everyMs = 1000 / group.perSecond;
    const count = Math.floor((rampMs + measureMs) / everyMs);
    return Array.from({ length: count }, (_, i) => ({
      atMs: (i + at / groups.length) * everyMs,
      group,
      key: group.keys[i % group.keys.length] ?? "",
    }));
  });
  return due.toSorted((a, b) => a.atMs - b.atMs);
}

function bodyOf({ words }: Group, model: string): string {
  const max_tokens = words === 0 ? 256 : words;
  return JSON.stringify({ model, messages: prompt, max_tokens, stream: words > 0 });
}

type Sending = {
  readonly body: string;
  readonly begunAt: number;
  readonly outcome: Outcome | null;
};

function sent(url: string, due: Due, { body, begunAt, outcome }: Sending): Promise<void> {
  const sinceDue = (): number => performance.now() - begunAt - due.atMs;
  return new Promise((resolve) => {
    const ended = (status: number, firstByteMs: number): void => {
      if (outcome !== null) note(outcome, due.group, { status, firstByteMs, totalMs: sinceDue() });
      resolve();
    };
    const outgoing = httpRequest(url, {
      method: "POST",
      agent,
      headers: {
        authorization: `Bearer ${due.key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      },
    });
    outgoing.on("error", () => ended(0, 0));
    outgoing.on("response", (response) => {
      let firstByteMs = 0;
      let last: Buffer | null = null;
      response.on("data", (part: Buffer) => {
        if (last === null) firstByteMs = sinceDue();
        last = part;
      });
      response.on("error", () => ended(0, 0));
      response.on("end", () => {
        const isWhole = due.group.words === 0 || last?.includes("[DONE]") === true;
        const status = response.statusCode ?? 0;
        ended(status === 200 && !isWhole ? 0 : status, firstByteMs);
      });
    });
    outgoing.end(body);
  });
}

function note(
  outcome: Outcome,
  { isTimed }: Group,
  came: { readonly status: number; readonly firstByteMs: number; readonly totalMs: number },
): void {
  const statuses = isTimed ? outcome.timedStatuses : outcome.untimedStatuses;
  statuses[came.status] = (statuses[came.status] ?? 0) + 1;
  if (!isTimed || came.status !== 200) return;
  outcome.firstByteMs.push(came.firstByteMs);
  outcome.totalMs.push(came.totalMs);
}
