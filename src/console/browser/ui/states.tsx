import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { createFailedOutcome } from "../api/client.ts";
import type { CallFailure } from "../api/client.ts";
import { rewriteAmounts } from "../lib/money.ts";
import { formatDurationInWholeUnits } from "../lib/time.ts";
import { createCell, useCell, useNow } from "../state/cell.ts";
import { nextRetryAt, onRetry, retryNow } from "../state/connection.ts";
import type { Read } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { canMakeCall, session } from "../state/session.ts";
import type * as Remedies from "../lib/remedies.ts";
import type { Page } from "../pages.ts";
import { CodeBlock, CopyButton, Button } from "./basics.tsx";

const PLACEHOLDER_DELAY_MS = 300;
const OLD_AGE_MS = 30_000;

function useHasWaited(): boolean {
  const [waited, setWaited] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaited(true), PLACEHOLDER_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  return waited;
}

/** A placeholder with the final height, so that the layout doesn't move. */
function Skeleton({ height }: { height: number }) {
  const waited = useHasWaited();
  const rows = Array.from({ length: Math.max(1, Math.floor(height / 36)) }, (_, i) => i);
  return (
    <div class="skeleton" style={{ height: `${height}px` }} aria-busy="true">
      {waited && rows.map((row) => <span key={row} />)}
      {waited && <span class="hidden">Reading</span>}
    </div>
  );
}

type EmptyProps = { text: string; command?: string; children?: ComponentChildren };
export function Empty({ text, command, children }: EmptyProps) {
  return (
    <div class="empty">
      <p>{text}</p>
      {command !== undefined && <CodeBlock text={command} />}
      {children}
    </div>
  );
}

export function FirstSteps() {
  const steps = [
    ["Try a model here", ["playground"]],
    ["Connect your client", ["connect"]],
  ] as const;
  return (
    <p class="actions">
      {steps.map(([text, path]) => (
        <a key={text} href={hrefOf(path)}>
          {text}
        </a>
      ))}
    </p>
  );
}

const remedies = createCell<typeof Remedies | undefined>(undefined);
/** Loads the texts of remedies, which a page without failures doesn't need. */
const loadRemedies = async (): Promise<void> => remedies.set(await import("../lib/remedies.ts"));

export function Remedy(cause: Parameters<typeof Remedies.findRemedyForFailedRequest>[0]) {
  const who = useCell(session);
  const loaded = useCell(remedies);
  useEffect(() => void loadRemedies().catch(() => undefined), []);
  if (loaded === undefined) return null;
  const [text, action, call] = loaded.findRemedyForFailedRequest(cause);
  const mayAct = call === undefined || (who ? canMakeCall(who, call) : false);
  return (
    <>
      {text} {action !== undefined && mayAct && <a href={hrefOf(...action[1])}>{action[0]}</a>}
    </>
  );
}

type FailureNoticeProps = { failure: CallFailure; again?: () => void; verb?: string };
export function FailureNotice({ failure, again, verb = "Try again" }: FailureNoticeProps) {
  const { message, requestId, docsUrl } = failure;
  return (
    <div class="failed" role="alert">
      <p>
        <strong>{rewriteAmounts(message)}</strong>
      </p>
      <p class="muted">
        <Remedy {...failure} /> {docsUrl !== null && <a href={docsUrl}>About this error</a>}
      </p>
      <p class="actions">
        {again !== undefined && <Button text={verb} onClick={again} />}
        {requestId !== null && (
          <>
            <code class="small">{requestId}</code> <CopyButton text={requestId} label="Copy ID" />
          </>
        )}
      </p>
    </div>
  );
}

export function Age({ read }: { read: Read<unknown> }) {
  const now = useNow();
  if (read.latest === undefined || read.failure === undefined) return null;
  const age = now - read.at;
  return (
    <span class="small warn-text" role="status">
      ▲ {age > OLD_AGE_MS ? `${formatDurationInWholeUnits(age)} old` : "not up to date"}:{" "}
      {read.failure.message}
    </span>
  );
}

export function ReadResult<T>({
  read,
  height,
  children,
}: {
  read: Read<T>;
  height: number;
  children: (data: T) => ComponentChildren;
}) {
  if (read.latest !== undefined) {
    return (
      <>
        <Age read={read} />
        {children(read.latest)}
      </>
    );
  }
  if (read.failure !== undefined) {
    return <FailureNotice failure={read.failure} again={read.reload} />;
  }
  return <Skeleton height={height} />;
}

/** Like `ReadResult`, within a line of text. */
export function Inline<T>({
  read,
  children,
}: {
  read: Read<T>;
  children: (data: T) => ComponentChildren;
}) {
  const now = useNow();
  const { latest, failure, at, reload: again } = read;
  if (failure === undefined) {
    return <>{latest === undefined ? <InlinePlaceholder /> : children(latest)}</>;
  }
  const age =
    latest === undefined
      ? "not read"
      : `${formatDurationInWholeUnits(Math.max(1000, now - at))} old`;
  return (
    <>
      {latest !== undefined && children(latest)}{" "}
      <span class="small warn-text" title={failure.message}>
        ▲ {age} <Button text="Try again" class="quiet" onClick={again} />
      </span>
    </>
  );
}

function InlinePlaceholder() {
  return <span class="hidden">{useHasWaited() && "Reading"}</span>;
}

export function ConnectionBar() {
  const at = useCell(nextRetryAt);
  const [, tick] = useState(0);
  useEffect(() => {
    if (at === null) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [at]);
  if (at === null) return null;
  const seconds = Math.max(0, Math.ceil((at - Date.now()) / 1000));
  return (
    <div class="connection" role="status">
      ■ Can't reach this region.{" "}
      {at === 0 ? (
        "Retrying…"
      ) : (
        <>
          Next try in {seconds} s. <Button text="Try now" onClick={retryNow} />
        </>
      )}
    </div>
  );
}

export type LazyPart = Pick<Page, "load">;
const views = new Map<LazyPart, FunctionComponent>();
const NO_SCRIPT = createFailedOutcome(
  "no_script",
  "This page couldn't load. The console may have been updated since you opened it.",
);

async function loadView(page: LazyPart): Promise<FunctionComponent> {
  const view = views.get(page) ?? (await page.load());
  views.set(page, view);
  return view;
}

/** Loads a page's script in advance. Ignores failures. */
export function preload(page: LazyPart): void {
  void loadView(page).catch(() => undefined);
}

/** Loads the dialogs, the remedies and then one page after another while the browser is idle. */
export function preloadWhenIdle(
  pages: readonly LazyPart[],
  loadDialogs: () => Promise<unknown>,
): () => void {
  let isStopped = false;
  const timer = setTimeout(async () => {
    await Promise.all([loadDialogs(), loadRemedies()]).catch(() => undefined);
    for (const page of pages) {
      if (isStopped || document.hidden) return;
      await loadView(page).catch(() => undefined);
    }
  }, IDLE_MS);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

const IDLE_MS = 3000;

export function LazyPage({ page, height = 480 }: { page: LazyPart; height?: number }) {
  const [, draw] = useState(0);
  const [hasFailed, setHasFailed] = useState(false);
  const load = (): void => {
    setHasFailed(false);
    void loadView(page).then(
      () => draw((count) => count + 1),
      () => setHasFailed(true),
    );
  };
  useEffect(load, [page]);
  useEffect(() => onRetry(() => (views.has(page) ? false : (load(), true))), [page]);
  const View = views.get(page);
  if (View !== undefined) return <View />;
  if (!hasFailed) return <Skeleton height={height} />;
  // Browsers cache a failed import, so only a reload helps.
  return (
    <FailureNotice failure={NO_SCRIPT.failure} again={() => location.reload()} verb="Reload" />
  );
}
