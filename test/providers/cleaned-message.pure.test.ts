import { expect, it } from "vitest";
import { cleanMessage } from "../../src/models/core/cleaned-message.ts";

it.each([
  "arn:aws:iam::123456789012:role/x",
  "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.x",
  "accounts/acme-corp/deployedModels/foo",
  "projects/acme/locations/eu",
  "/subscriptions/<id>/rg/foo",
  "/subscriptions/0f-1/resourceGroups/acme/providers/x",
  "project_number:123456789012",
  "project: acme",
  "123456789012",
  "fd00::1",
  "::1",
  "fd00::",
  "2001:db8::8a2e:370:7334",
  "[fd00::1]:8080",
  "vllm-0:8000",
  "vllm_eu:8000/v1",
  "ollama:11434",
  "node1:443",
  "x.modal.run/foo",
  "x.modal.run",
  "a.b.example/v1/chat",
  "pool.svc",
  "fe80::1%eth0",
])("the error message cleaner removes %s", (secret) => {
  expect(cleanMessage(`Not possible: ${secret} said no.`)).toBe("Not possible: [removed] said no.");
  expect(cleanMessage(`Bad '${secret}', sorry`)).toBe("Bad '[removed]', sorry");
  expect(cleanMessage(`at ${secret}: refused`)).toMatch(/^at \[removed\]:? refused$/);
});

it.each([
  "Invalid type for 'messages[0].content': expected a string, got 4.1 (max_tokens).",
  "messages: roles must alternate user/assistant, got std::string at line:120",
  "max_tokens:4096 is more than tokens:2048, at most 2147483647 at 12:30:45",
  "max-tokens:4096, limit:16000 and index:1024 are out of range",
  "image/png and application/json are supported, e.g. data:image/png;base64",
  "Extra inputs are not permitted: tools.0.function.parameters",
  "The schema's project, account and organization must be strings :: see properties",
])("the error message cleaner keeps %s", (plain) => {
  expect(cleanMessage(plain)).toBe(plain);
});
