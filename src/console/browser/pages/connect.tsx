import { useState, useEffect, useRef } from "preact/hooks";
import { ORIGIN_PLACEHOLDER, replaceAliasesForClient, KEY_PLACEHOLDER } from "../lib/clients.ts";
import type { ClientSetupBlocks } from "../lib/clients.ts";
import type { FreshKey, Generation, Key } from "../api/types.ts";
import { send } from "../api/client.ts";
import type { CallOutcome } from "../api/client.ts";
import { useCell } from "../state/cell.ts";
import { latestOf, change, useCustomRead, useRead, useModels } from "../state/reads.ts";
import { useQuery, hrefOf } from "../state/route.ts";
import { connectKey, isViewingCustomer, useCanMakeCall, useSession } from "../state/session.ts";
import { CodeBlock, CopyButton, PageHead, Button, ModelName, Panel } from "../ui/basics.tsx";
import { useChange } from "../ui/dialog.tsx";
import { FailureNotice, ReadResult } from "../ui/states.tsx";
import { formatCharge } from "../lib/money.ts";
import { describeRequest } from "../ui/request-sentence.ts";

const BLOCKS = "/console/clients.json";
type Read = CallOutcome<readonly ClientSetupBlocks[]>;
const SHOWN_CHARACTERS = 18;

export function Connect() {
  const [query, update] = useQuery();
  const who = useSession();
  const read = useCustomRead(BLOCKS, async () => (await send(BLOCKS, {})) as Read);
  const held = useCell(connectKey);
  return (
    <>
      <PageHead
        title="Connect"
        text={`Each block works in an empty shell. It contains the ${who.region.toUpperCase()} region's address and ${held === null ? KEY_PLACEHOLDER : "your key"}.`}
      />
      {!isViewingCustomer(who) && <KeyLine client={query["client"] ?? "my first client"} />}
      <ReadResult read={read} height={480}>
        {(clients) => {
          const shown = clients.find(({ name }) => name === query["client"]) ?? clients[0];
          return (
            <>
              <div class="tabs" role="tablist" aria-label="Clients">
                {clients.map(({ name }) => (
                  <Button
                    key={name}
                    text={name}
                    role="tab"
                    aria-selected={name === shown?.name}
                    onClick={() => update({ client: name })}
                  />
                ))}
              </div>
              {shown && <Blocks of={shown} held={held} />}
            </>
          );
        }}
      </ReadResult>
      {held !== null && <FirstOfKey key={held.secret} id={held.id} />}
    </>
  );
}

function fillIn(text: string, key: string): string {
  return text.replaceAll(ORIGIN_PLACEHOLDER, location.origin).replaceAll(KEY_PLACEHOLDER, key);
}

type BlocksProps = { of: ClientSetupBlocks; held: ReturnType<typeof connectKey.get> };
function Blocks({ of: { name, parts }, held }: BlocksProps) {
  const secret = held?.secret ?? null;
  const key = useKnownKeys().find(({ id }) => id === held?.id);
  const allowed = key?.allowed_models ?? key?.policy?.allowed_models ?? undefined;
  const masked = secret === null ? KEY_PLACEHOLDER : `${secret.slice(0, SHOWN_CHARACTERS)}…`;
  const live = (latestOf(useModels())?.data ?? []).flatMap(({ id, alias_of }) =>
    alias_of === undefined ? [id] : [],
  );
  return (
    <section class="panel" role="tabpanel" aria-label={name}>
      {parts.map(({ kind, text: written }) => {
        if (kind === "text") return <p key={written}>{fillIn(written, KEY_PLACEHOLDER)}</p>;
        const text = replaceAliasesForClient(name, written, live, allowed);
        return (
          <CodeBlock
            key={written}
            text={fillIn(text, masked)}
            copied={fillIn(text, secret ?? KEY_PLACEHOLDER)}
          />
        );
      })}
      <p class="after-code">
        <a href="/docs/use/clients" target="_blank">
          More about each client
        </a>
      </p>
    </section>
  );
}

function KeyLine({ client }: { client: string }) {
  const held = useCell(connectKey);
  const mayMake = useCanMakeCall()("POST /v1/keys");
  if (held !== null) return <CurrentKey secret={held.secret} />;
  return (
    <>
      <div class="filter-line">
        {mayMake && <MakeKey key={client} client={client} />}
        <PasteKey mayMake={mayMake} />
      </div>
      <p class="small muted">
        The key is inserted into every code block and stays in this tab until you reload it.
      </p>
    </>
  );
}

function CurrentKey({ secret }: { secret: string }) {
  const [isBlocked, setBlocked] = useState(false);
  return (
    <div class="filter-line">
      <span>
        Current key: <code>{isBlocked ? secret : `${secret.slice(0, SHOWN_CHARACTERS)}…`}</code>
      </span>
      <CopyButton text={secret} label="Copy key" onBlocked={() => setBlocked(true)} />
      <Button text="Use another key" onClick={() => connectKey.set(null)} />
    </div>
  );
}

function MakeKey({ client }: { client: string }) {
  const [name, setName] = useState(client);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const { busy, failure, start } = useChange(
    () => change("POST /v1/keys", { body: { name: name.trim() }, idempotencyKey }, ["/v1/keys"]),
    ({ key: secret, id }: FreshKey) => connectKey.set({ secret, id }),
  );
  return (
    <>
      <input
        class="filter"
        aria-label="Name of the new key"
        maxLength={100}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <Button text="Create a key" class="primary" disabled={busy || !name.trim()} onClick={start} />
      {failure && <FailureNotice failure={failure} />}
    </>
  );
}

/** Returns the keys that the person can see. */
function useKnownKeys(): readonly Key[] {
  const call = "GET /v1/keys";
  return latestOf(useRead(useCanMakeCall()(call) ? call : null))?.keys ?? [];
}

function PasteKey({ mayMake }: { mayMake: boolean }) {
  const known = useKnownKeys();
  const take = (text: string): void => {
    const secret = text.trim();
    const id = known.find(({ prefix }) => secret.startsWith(prefix))?.id ?? null;
    if (secret !== "") connectKey.set({ secret, id });
  };
  return (
    <input
      class="filter"
      type="password"
      autocomplete="off"
      aria-label="Paste a key"
      placeholder={mayMake ? "or paste one" : "Paste your key"}
      onChange={(event) => take(event.currentTarget.value)}
    />
  );
}

const EVERY_MS = 2000;
const POLLING_MS_MAX = 600_000;
const HINT_AFTER_MS = 60_000;

function FirstOfKey({ id }: { id: string | null }) {
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
          ● It works: <ModelName id={of.model} /> answered for {formatCharge(of.cost_micro)}.
        </>
      ) : (
        <>
          {of.status === "held" ? "○" : "■"} {describeRequest(of)}
        </>
      )}{" "}
      <a href={hrefOf(["requests", of.id])}>View request</a>
      {of.error !== null && (
        <>
          {" · "}
          <a href={`/docs/use/errors#${of.error.code}`} target="_blank">
            How to fix {of.error.code}
          </a>
        </>
      )}
    </p>
  );
}
