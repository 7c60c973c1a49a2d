import { useState } from "preact/hooks";
import { latestOf, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { CodeBlock, Panel, Button } from "../ui/basics.tsx";

const HIDDEN_KEY = "get-started";
const EVERY_MS = 5000;
const MEMBERS = "GET /console/api/people/members";
const CURL = `curl ${location.origin}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"model":"smart","messages":[{"role":"user","content":"Hello"}]}'`;

type Step = {
  readonly text: string;
  readonly isDone: boolean;
  readonly action: readonly [text: string, href: string];
};

export function GetStarted() {
  const [isHidden, setHidden] = useState(localStorage.getItem(HIDDEN_KEY) === "hidden");
  const steps = useSteps(!isHidden);
  const next = steps?.find(({ isDone }) => !isDone);
  if (isHidden || steps === undefined || next === undefined) return null;
  const hide = (): void => {
    localStorage.setItem(HIDDEN_KEY, "hidden");
    setHidden(true);
  };
  return (
    <Panel
      title={`Get started: ${steps.filter(({ isDone }) => isDone).length} of ${steps.length} done`}
      aside={<Button text="Hide" class="quiet" onClick={hide} />}
    >
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.text} class={step.isDone ? "muted" : ""}>
            <span aria-hidden="true">{step.isDone ? "✓" : "○"}</span> {step.text}
            <span class="hidden">{step.isDone ? ", done" : ""}</span>{" "}
            {!step.isDone && <a href={step.action[1]}>{step.action[0]}</a>}
          </li>
        ))}
      </ol>
      {next.text === REQUEST && <CodeBlock text={CURL} label="The first request" />}
    </Panel>
  );
}

const REQUEST = "Send your first request";

function useSteps(isRead: boolean): readonly Step[] | undefined {
  const may = useMay();
  const every = { every: EVERY_MS };
  const balance = latestOf(useRead(isRead ? "GET /v1/balance" : null, {}, every));
  const keys = latestOf(useRead(isRead ? "GET /v1/keys" : null, {}, every));
  const newest = { query: { limit: 10 } };
  const requests = latestOf(useRead(isRead ? "GET /v1/generations" : null, newest, every));
  const mayInvite = isRead && may("POST /console/api/people/invitations");
  const team = latestOf(useRead(mayInvite ? MEMBERS : null, {}));
  if (!balance || !keys || !requests || (mayInvite && !team)) return undefined;
  const isUsed = requests.generations.length > 0;
  return [
    {
      text: "Add credits",
      isDone: balance.credits_micro > 0 || isUsed,
      action: ["Add credits", hrefOf(["credits"])],
    },
    {
      text: "Create a key",
      isDone: isUsed || keys.keys.some(({ revoked }) => !revoked),
      action: ["Create key", hrefOf(["keys"], { make: "1" })],
    },
    { text: REQUEST, isDone: isUsed, action: ["Connect your client", hrefOf(["connect"])] },
    ...(mayInvite
      ? [
          {
            text: "Invite a teammate",
            isDone: (team?.members.length ?? 0) > 1,
            action: ["Invite member", hrefOf(["team"])] as const,
          },
        ]
      : []),
  ];
}
