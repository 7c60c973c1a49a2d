import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { createFailedOutcome } from "../api/client.ts";
import type { Page } from "../pages.ts";
import { onRetry } from "../state/connection.ts";
import { FailureNotice, loadRemedies, Skeleton } from "./states.tsx";

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
