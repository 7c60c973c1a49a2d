import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Replay, Webhook, WebhookWithSecret } from "../api/types.ts";
import { WEBHOOK_EVENT_TYPE_GROUPS } from "../lib/event-types.ts";
import type { WebhookEventType } from "../lib/event-types.ts";
import { countText } from "../lib/money.ts";
import { DAY_MS, localAndUtcTime, formatLocalMinute } from "../lib/time.ts";
import { change, useRead } from "../state/reads.ts";
import { Dialog, FormDialog, Input, MOMENT, Select, useTyped } from "../ui/dialog.tsx";
import { HOUR_S, SecretDialog, OverlapField } from "../ui/secret.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Checkbox } from "../ui/basics.tsx";

/** Paths of reads to refresh after a webhook change. */
export const TOUCHES = ["/v1/webhooks"];

type Closing = { readonly onClose: () => void };
type Receiver = Readonly<
  Partial<Record<"credential" | "event_name" | "customer" | "header", string>>
>;
type WebhookFields = Pick<Webhook, "url" | "types" | "format"> & {
  readonly receiver?: Receiver | null;
};

const FORMATS: readonly (readonly [NonNullable<Webhook["format"]> | "", string])[] = [
  ["", "Signed JSON"],
  ["slack", "Slack message"],
  ["stripe_meter_events", "Usage for Stripe meters"],
  ["openmeter", "Usage for OpenMeter"],
  ["lago", "Usage for Lago"],
  ["otlp", "Usage as OpenTelemetry traces"],
];
const SETTINGS = [
  ["credential", "Receiver's credential", "Stored encrypted. If empty, unchanged."],
  ["event_name", "Event name", "The meter's event name, event type or metric code"],
  ["customer", "Customer", "end_user, or tag: and a tag's key"],
  ["header", "Credential's header", "Default: authorization"],
] as const;

/** Reports whether a metering service receives the messages. They then have no signature. */
export function isMetered({ format }: Pick<Webhook, "format">): boolean {
  return format !== null && format !== "slack";
}

export function NewWebhook({ onClose, onMade }: Closing & { onMade: (id: string) => void }) {
  const [fresh, setFresh] = useState<WebhookWithSecret | null>(null);
  const { shape, fields } = useWebhookFields({
    url: "",
    types: null,
    format: null,
    receiver: null,
  });
  if (fresh) return <SigningSecret webhook={fresh} onClose={() => onMade(fresh.id)} />;
  return (
    <FormDialog
      title="New webhook"
      verb="Create webhook"
      run={() => change("POST /v1/webhooks", { body: shape }, TOUCHES)}
      onDone={(made) => (isMetered(made) ? onMade(made.id) : setFresh(made))}
      onClose={onClose}
    >
      {fields}
    </FormDialog>
  );
}

export function EditWebhook({ webhook, onClose }: Closing & { webhook: Webhook }) {
  const { event_name, customer, header } = webhook.receiver ?? {};
  const given = Object.entries({ event_name, customer, header });
  const receiver = Object.fromEntries(given.filter(([, text]) => typeof text === "string"));
  const { shape, fields } = useWebhookFields({ ...webhook, receiver });
  const path = { id: webhook.id };
  return (
    <FormDialog
      title="Change webhook"
      verb="Save"
      run={() => change("PATCH /v1/webhooks/{id}", { path, body: shape }, TOUCHES)}
      onClose={onClose}
    >
      {fields}
    </FormDialog>
  );
}

function useWebhookFields(before: WebhookFields): {
  shape: WebhookFields;
  fields: ComponentChildren;
} {
  const [url, setUrl] = useState(before.url);
  const [types, setTypes] = useState<readonly WebhookEventType[]>(before.types ?? []);
  const [format, setFormat] = useState(before.format);
  const [receiver, setReceiver] = useState<Receiver>(before.receiver ?? {});
  const isUsage = isMetered({ format });
  const names = SETTINGS.filter(
    ([name]) => (name === "header") === (format === "otlp") || name === "credential",
  );
  const filled = names.flatMap(([name]) => (receiver[name] ? [[name, receiver[name]]] : []));
  const choose = (type: WebhookEventType, on: boolean): void =>
    setTypes([...types.filter((one) => one !== type), ...(on ? [type] : [])]);
  return {
    shape: isUsage
      ? { url: url.trim(), types: ["usage.settled"], format, receiver: Object.fromEntries(filled) }
      : { url: url.trim(), types: types.length === 0 ? null : types, format },
    fields: (
      <>
        <Input
          label="Address"
          param="url"
          hint="A public https address"
          required
          autofocus
          type="url"
          value={url}
          onText={setUrl}
        />
        <Select
          label="Format"
          param="format"
          value={format ?? ""}
          options={FORMATS}
          onPick={(name) => setFormat(name || null)}
        />
        {isUsage &&
          names.map(([name, label, hint]) => (
            <Input
              key={name}
              label={label}
              param={`receiver.${name}`}
              hint={hint}
              type={name === "credential" ? "password" : "text"}
              value={receiver[name] ?? ""}
              onText={(text) => setReceiver({ ...receiver, [name]: text.trim() })}
            />
          ))}
        <details open={types.length > 0} hidden={isUsage}>
          <summary>Only some events{types.length > 0 && `: ${types.length}`}</summary>
          <Types types={types} onChoose={choose} />
        </details>
      </>
    ),
  };
}

type TypesProps = {
  types: readonly WebhookEventType[];
  onChoose: (type: WebhookEventType, on: boolean) => void;
};
function Types({ types, onChoose }: TypesProps) {
  return (
    <>
      <p class="small muted">Select none to receive all events, including future types.</p>
      {WEBHOOK_EVENT_TYPE_GROUPS.map(([title, all]) => (
        <fieldset key={title} class="choices">
          <legend>{title}</legend>
          {all.map(([type, text]) => (
            <Checkbox
              key={type}
              text={text}
              isOn={types.includes(type)}
              onChange={(isOn) => onChoose(type, isOn)}
            />
          ))}
        </fieldset>
      ))}
      <p class="small muted">
        A key's simple budget sends only "key: budget reached". Other budgets send "budget: alert"
        at their alert threshold and "budget: reached".
      </p>
    </>
  );
}

export function RotateWebhook({ webhook, onClose }: Closing & { webhook: Webhook }) {
  const [overlap, setOverlap] = useState(HOUR_S);
  const [rotated, setRotated] = useState<WebhookWithSecret | null>(null);
  if (rotated) return <SigningSecret webhook={rotated} onClose={onClose} />;
  return (
    <FormDialog
      title="Rotate the secret"
      verb="Rotate"
      run={() => {
        const filling = { path: { id: webhook.id }, body: { overlap_seconds: overlap } };
        return change("POST /v1/webhooks/{id}/rotate", filling, TOUCHES);
      }}
      onDone={setRotated}
      onClose={onClose}
    >
      <p>Until the overlap ends, every message is signed with both secrets.</p>

      <OverlapField overlap={overlap} onChange={setOverlap} />
    </FormDialog>
  );
}

function SigningSecret({ webhook, onClose }: Closing & { webhook: WebhookWithSecret }) {
  const { secret, previous_secret_until: until } = webhook;
  return (
    <SecretDialog
      title="The webhook's secret"
      noun="secret"
      secret={secret}
      note={until === null ? "" : `The previous secret signs until ${localAndUtcTime(until)}.`}
      uses={[
        ["For a .env file", `WEBHOOK_SECRET=${secret}`],
        [
          "Verify a message",
          'import { Webhook } from "standardwebhooks";\nconst event = new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers);',
        ],
      ]}
      onClose={onClose}
    />
  );
}

/** Replays events since a time, at most 1,000 per click. */
export function ReplayEvents({ webhook, onClose }: Closing & { webhook: Webhook }) {
  const { id } = webhook;
  const [{ since }, line] = useTyped({ since: formatLocalMinute(Date.now() - DAY_MS) });
  const [sum, setSum] = useState(0);
  const [replayed, setReplayed] = useState<Replay | null>(null);
  const more = replayed?.next_since ?? null;
  const isUsage = webhook.types?.join() === "usage.settled";
  const result = (
    <p role="status">
      {isUsage ? "The usage is sent again from that point." : `${countText(sum, "event")} queued.`}
    </p>
  );
  if (replayed && more === null) {
    return (
      <Dialog title="Replay" onClose={onClose}>
        {result}
      </Dialog>
    );
  }
  return (
    <FormDialog
      title="Replay"
      verb={more === null ? "Replay" : "Send the rest"}
      run={() => {
        const at = more ?? new Date(since).toISOString();
        const body = isUsage ? { usage_since: at } : { since: at };
        return change("POST /v1/webhooks/{id}/replay", { path: { id }, body }, TOUCHES);
      }}
      onDone={(answer) => {
        setReplayed(answer);
        setSum(sum + answer.queued);
      }}
      onClose={onClose}
    >
      {line("since", "Resend events since", {
        ...MOMENT,
        param: isUsage ? "usage_since" : "since",
        hint: "In your time zone. Each event keeps its ID, so receivers can ignore duplicates.",
      })}
      {!isUsage && <ReplayCount webhook={webhook} since={since} />}
      {replayed && result}
    </FormDialog>
  );
}

const COUNTED_MAX = 100;

function ReplayCount({ webhook, since }: { webhook: Webhook; since: string }) {
  const from = Number.isNaN(Date.parse(since)) ? "" : new Date(since).toISOString();
  const query = { limit: COUNTED_MAX, from };
  const read = useRead(from === "" ? null : "GET /v1/events", { query });
  const { types, url } = webhook;
  const isWanted = ({ type }: { type: string }): boolean =>
    types === null || types.some((one) => one === type);
  return (
    <ReadResult read={read} height={36}>
      {({ events, next_after }) => (
        <p role="status" class="break">
          {(next_after ?? null) === null ? "" : "At least "}
          <strong>{countText(events.filter(isWanted).length, "event")}</strong> to {url}, including
          delivered ones.
        </p>
      )}
    </ReadResult>
  );
}
