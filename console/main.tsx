import { render } from "preact";
import { login } from "./api/client.ts";
import { App } from "./app.tsx";
import { farewell, session } from "./state/session.ts";
import { applyScheme } from "./state/scheme.ts";

/** A link that carries a key, as `npm start` prints one, is exchanged at once; the address forgets it first. */
async function takeKeyOfAddress(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!location.hash.startsWith("#key=") || key === null) return;
  history.replaceState(null, "", "#/");
  const outcome = await login(key);
  if (outcome.ok) session.set(outcome.value);
  else farewell.set(`The link's key was refused: ${outcome.failure.message}`);
}

const place = document.querySelector("#app");
if (place === null) throw new Error("the page has no place for the console");
applyScheme();
await takeKeyOfAddress();
render(<App />, place);
