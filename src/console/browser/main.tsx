import { render } from "preact";
import { App } from "./app.tsx";
import { takeKeyFromAddress } from "./state/link.ts";
import { applyColorScheme } from "./state/scheme.ts";

const place = document.querySelector("#app");
if (place === null) throw new Error("the page has no place for the console");
applyColorScheme();
takeKeyFromAddress();
addEventListener("hashchange", takeKeyFromAddress);
render(<App />, place);
