import { useState } from "preact/hooks";
import { Code, Copy } from "./basics.tsx";
import { Dialog } from "./dialog.tsx";

/** A secret that is shown once; leaving before it was copied asks. */
export function Secret({
  name,
  secret,
  note = "",
  onClose,
}: {
  name: string;
  secret: string;
  /** What else there is to know of it. */
  note?: string;
  onClose: () => void;
}) {
  const [copied, setCopied] = useState(false);
  const [asked, setAsked] = useState(false);
  const close = (): void => (copied || asked ? onClose() : setAsked(true));
  const done = (): void => setCopied(true);
  const curl = `curl ${location.origin}/v1/models -H "Authorization: Bearer ${secret}"`;
  return (
    <Dialog title={`The key ${name}`} onClose={close} wide>
      <p>It is shown this once. Nobody can show it again, not even who runs this region. {note}</p>
      <div class="secret">
        <code>{secret}</code>
        <Copy text={secret} label="Copy key" onCopied={done} />
      </div>
      <h3>As .env</h3>
      <Code
        text={`OPENAI_BASE_URL=${location.origin}/v1\nOPENAI_API_KEY=${secret}`}
        onCopied={done}
      />
      <h3>Try it</h3>
      <Code text={curl} onCopied={done} />
      {asked && !copied && (
        <p class="notice" role="alert">
          ▲ The key was not copied. Close again to leave it behind.
        </p>
      )}
      <div class="actions end">
        <button type="button" onClick={close}>
          {asked && !copied ? "Close without it" : "Done"}
        </button>
      </div>
    </Dialog>
  );
}
