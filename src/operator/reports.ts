import { pageQuerySchema, parseQuery } from "../shared/http/parse-body.ts";
import { memberIdsByKeyId } from "../accounts/keys/keys.store.ts";
import { success } from "../shared/failure.ts";
import { eventQuery, eventsView, alertsView } from "../money/wallet/routes/reads.route.ts";
import { readUsageReport } from "../money/wallet/routes/usage.route.ts";
import { findOrganizationOfCall } from "./organizations.ts";
import type { OperatorCall } from "./operator-context.ts";

export async function getUsage(call: OperatorCall) {
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { id } = found.value;
  return readUsageReport(call.url, call.now, {
    ask: (ask) => ask(call.wallet(id)),
    members: async () => success(await memberIdsByKeyId(call.db, id)),
  });
}

export async function getAlerts(call: OperatorCall) {
  const page = parseQuery(pageQuerySchema, call.url);
  if (!page.ok) return page;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const { limit, offset } = page.value;
  const answer = await call.wallet(found.value.id).alerts(limit, offset);
  return answer.ok ? success(alertsView(answer.value, page.value)) : answer;
}

export async function getEvents(call: OperatorCall) {
  const query = eventQuery(call.url);
  if (!query.ok) return query;
  const found = await findOrganizationOfCall(call);
  if (!found.ok) return found;
  const answer = await call.wallet(found.value.id).events(query.value);
  return answer.ok ? success(eventsView(answer.value)) : answer;
}
