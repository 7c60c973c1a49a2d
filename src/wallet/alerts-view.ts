import { timestamp } from "../lib/clock.ts";
import type { AlertPage } from "./wallet-contract.ts";

/** The JSON of a page of alerts, newest first; amounts in micros. */
export function alertsView(
  page: AlertPage,
  asked: { readonly limit: number; readonly offset: number },
): Readonly<Record<string, unknown>> {
  const alerts = page.alerts.map((alert) => ({
    id: alert.id,
    kind: alert.kind,
    external_id: alert.externalId,
    period: alert.period,
    threshold: alert.threshold,
    limit_micro: alert.limitMicro,
    value_micro: alert.valueMicro,
    created_at: timestamp(alert.createdAt),
  }));
  return { alerts, total: page.total, ...asked };
}
