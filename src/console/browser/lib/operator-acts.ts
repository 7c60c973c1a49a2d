/** What an operator did by each call of the operators' API, before the customer's name. */
const ACTS: Readonly<Record<string, string>> = {
  "POST /orgs": "created",
  "PATCH /orgs/{id}": "changed",
  "DELETE /orgs/{id}": "closed",
  "POST /orgs/{id}/restore": "restored",
  "POST /orgs/{id}/invitations": "invited a person to",
  "DELETE /orgs/{id}/invitations/{invitation_id}": "canceled an invitation of",
  "POST /orgs/{id}/domains/{domain}/approve": "approved a domain of",
  "DELETE /orgs/{id}/company-issuer": "removed the company login of",
  "POST /orgs/{id}/members": "added a member to",
  "PATCH /orgs/{id}/members/{member_id}": "changed a member of",
  "DELETE /orgs/{id}/members/{member_id}": "removed a member of",
  "POST /orgs/{id}/members/{member_id}/keys": "created a key of",
  "PATCH /orgs/{id}/keys/{key_id}": "changed a key of",
  "DELETE /orgs/{id}/keys/{key_id}": "revoked a key of",
  "POST /orgs/{id}/keys/{key_id}/rotate": "rotated a key of",
  "DELETE /orgs/{id}/sessions/{session_id}": "ended a session of",
  "POST /orgs/{id}/pauses": "paused requests of",
  "DELETE /orgs/{id}/pauses/{pause_id}": "resumed requests of",
  "POST /orgs/{id}/credits": "added or corrected credits of",
  "POST /orgs/{id}/purchases/{purchase_id}/check": "checked a purchase of",
  "POST /orgs/{id}/purchases/{purchase_id}/refund": "refunded a purchase of",
  "POST /orgs/{id}/owed": "wrote off a debt of",
  "POST /orgs/{id}/reconcile": "reconciled",
  "POST /orgs/{id}/webhooks/{webhook_id}/test": "sent a test event to a webhook of",
  "POST /orgs/{id}/webhooks/{webhook_id}/replay": "replayed events to a webhook of",
  "POST /orgs/{id}/settle": "settled a request of",
  "POST /orgs/{id}/rebuild-wallet": "rebuilt the wallet of",
  "POST /prices": "scheduled prices",
  "DELETE /prices/{price_id}": "removed a price",
  "POST /merchants": "created a merchant",
  "POST /merchants/{name}/rotate": "rotated the secret of a merchant",
  "DELETE /merchants/{name}": "removed a merchant",
  "POST /costs": "imported provider bills",
  "POST /rerate": "repriced requests",
};

/** Returns the sentence of an operator's change. An unknown call stands for itself. */
export function actSentence({
  operator,
  act,
  organization,
}: {
  readonly operator: string;
  readonly act: string;
  readonly organization: { readonly id: string; readonly name: string | null } | null;
}): string {
  const whose = organization === null ? "" : ` ${organization.name ?? organization.id}`;
  return `${operator} ${ACTS[act] ?? `called ${act} for`}${whose}.`;
}
