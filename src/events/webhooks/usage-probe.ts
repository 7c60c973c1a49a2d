import type {
  UsageStreamRow,
  UsageStreamPage,
  StreamQuery,
  StreamStart,
} from "../../shared/contracts/usage-stream.ts";
import type { Result } from "../../shared/failure.ts";
import { selectMeteredRequests, findUsageFormat } from "./usage-formats.ts";
import type { Webhook } from "./webhooks.store.ts";

const PAGES_MAX = 20;
const PAGE_ROWS = 100;

/**
 * Returns a later row of another customer, or null. If the receiver accepts this row, the settings
 * aren't at fault.
 */
export async function findTestRow(
  read: (query: StreamQuery) => Promise<Result<UsageStreamPage>>,
  { webhook, start, probeNumber }: { webhook: Webhook; start: StreamStart; probeNumber: number },
): Promise<UsageStreamRow | null> {
  const format = findUsageFormat(webhook.format);
  if (format === null) return null;
  let from = start;
  let blockedCustomer: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await read({ from, limit: PAGE_ROWS });
    if (!page.ok || page.value.next.seq === page.value.from.seq) return null;
    const requests = selectMeteredRequests(page.value.rows, format, webhook.receiver ?? {});
    blockedCustomer ??= requests[0]?.customer;
    const others = new Map(
      requests.flatMap(({ row, customer }) =>
        customer === blockedCustomer ? [] : [[customer, row]],
      ),
    );
    if (others.size > 0) return [...others.values()][probeNumber % others.size] ?? null;
    from = page.value.next;
  }
  return null;
}
