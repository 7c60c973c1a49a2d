import { useEffect, useRef, useState } from "preact/hooks";
import type { Generation } from "../api/types.ts";
import { formatSpent } from "../lib/money.ts";
import { latestOf, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { ModelName, Panel, Button } from "../ui/basics.tsx";
import { sentenceOf } from "../ui/request-sentence.ts";

const EVERY_MS = 2000;
const POLLING_MS_MAX = 600_000;
const HINT_AFTER_MS = 60_000;

export function FirstOfKey({ id }: { id: string | null }) {
  return (
    <Panel title="The first request">
      {id === null ? (
        <p class="muted">You can't see this key, so you can't see its requests.</p>
      ) : (
        <Waiting key={id} id={id} />
      )}
    </Panel>
  );
}

function Waiting({ id }: { id: string }) {
  const [since, setSince] = useState(() => Date.now());
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const waited = Date.now() - since;
  const every = waited > POLLING_MS_MAX ? 0 : EVERY_MS;
  const newest = useNewest(id, every);
  if (newest !== null) return <RequestArrived of={newest} />;
  return (
    <>
      {every > 0 ? (
        <p role="status">○ Waiting for the first request with this key…</p>
      ) : (
        <Button text="Wait again" onClick={() => setSince(Date.now())} />
      )}
      {waited > HINT_AFTER_MS && (
        <p class="muted">
          No request arrived. Compare the first letters of the key, and check that the address
          starts with <code>{location.origin}</code>.
        </p>
      )}
    </>
  );
}

function useNewest(id: string, every: number): Generation | null {
  const read = useRead("GET /v1/generations", { query: { key_id: id, limit: 1 } }, { every });
  const newest = latestOf(read)?.generations[0] ?? null;
  const before = useRef<string | undefined>(undefined);
  if (latestOf(read) !== undefined) before.current ??= newest?.id ?? "";
  return newest?.id === before.current ? null : newest;
}

function RequestArrived({ of }: { of: Generation }) {
  const isGood = of.status === "settled" && of.error === null;
  return (
    <p role="status" class={isGood ? "good-text" : ""}>
      {isGood && of.model !== null ? (
        <>
          ● It works: <ModelName id={of.model} /> answered for {formatSpent(of.cost_micro)}.
        </>
      ) : (
        <>
          {of.status === "held" ? "○" : "■"} {sentenceOf(of)}
        </>
      )}{" "}
      <a href={hrefOf(["requests", of.id])}>See the request</a>
      {of.error !== null && (
        <>
          {" · "}
          <a href={`/docs/use/errors#${of.error.code}`}>What to do about {of.error.code}</a>
        </>
      )}
    </p>
  );
}
