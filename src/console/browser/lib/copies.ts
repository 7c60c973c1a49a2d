type CodeExample = { readonly name: string; readonly text: string };

export function codeExamplesOf(body: object, origin: string): readonly CodeExample[] {
  const json = JSON.stringify(body, null, 2);
  const base = `${origin}/v1`;
  const isStream = "stream" in body;
  return [
    {
      name: "curl",
      text: [
        `curl ${isStream ? "-N " : ""}${base}/chat/completions \\`,
        `  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\`,
        `  -d '${json.replaceAll("'", String.raw`'\''`)}'`,
      ].join("\n"),
    },
    {
      name: "Python",
      text: [
        "import json, os",
        "from openai import OpenAI",
        "",
        `client = OpenAI(base_url="${base}", api_key=os.environ["KEY"])`,
        `body = json.loads(${JSON.stringify(JSON.stringify(body))})`,
        ...(isStream
          ? [
              "for chunk in client.chat.completions.create(**body):",
              "    for choice in chunk.choices:",
              '        print(choice.delta.content or "", end="", flush=True)',
            ]
          : ["print(client.chat.completions.create(**body).choices[0].message.content)"]),
      ].join("\n"),
    },
    {
      name: "JavaScript",
      text: [
        'import OpenAI from "openai";',
        "",
        `const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.KEY });`,
        `const answer = await client.chat.completions.create(${json});`,
        isStream
          ? 'for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta.content ?? "");'
          : "console.log(answer.choices[0].message.content);",
      ].join("\n"),
    },
  ];
}
