import * as z from "zod/mini";
import {
  readEmailPreferences,
  eventTypesOfRole,
  storeEmailPreferences,
} from "../../events/notifications/notifications.store.ts";
import { EMAIL_EVENT_TYPES } from "../../events/notifications/notification-text.ts";
import type { EmailEventType } from "../../events/notifications/notification-text.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { MemberCall } from "./people-call.ts";

export const emailPreferencesSchema = z.object({
  types: z.array(z.enum(EMAIL_EVENT_TYPES)).check(z.maxLength(EMAIL_EVENT_TYPES.length)),
});

export async function getNotifications(call: MemberCall) {
  return success(notificationsView(call, await readEmailPreferences(call.db, call.as)));
}

export async function patchNotifications(call: MemberCall) {
  const fields = parseFields(emailPreferencesSchema, [], call.body);
  if (!fields.ok) return fields;
  const allowed = eventTypesOfRole(call.as.role);
  const forbiddenType = fields.value.types.find((type) => !allowed.includes(type));
  if (forbiddenType !== undefined) {
    return invalid(
      `"types" can't contain ${forbiddenType}: your role doesn't receive it.`,
      "types",
    );
  }
  const types = allowed.filter((type) => fields.value.types.includes(type));
  await storeEmailPreferences(call.db, call.as.memberId, { types, nowMs: call.now });
  return success(notificationsView(call, types));
}

function notificationsView({ mail, person, as }: MemberCall, types: readonly EmailEventType[]) {
  return {
    email: person.isEmailProven === 1 ? person.email : null,
    is_available: mail !== null,
    types,
    available_types: eventTypesOfRole(as.role),
  };
}
