"use strict";
// Colours for CUDA and for the IR: a list of token patterns each, tried at every place.

const cudaTokens = [
  ["comment", /\/\/[^\n]*|\/\*[\s\S]*?\*\//y],
  ["string", /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y],
  ["macro", /#[ \t]*\w+|__\w+__|\b__[a-z]\w*/y],
  ["number", /\b(?:0[xX][0-9a-fA-F]+(?:p[+-]?\d+)?|\d+\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*\b|\.\d+f?/y],
  ["keyword", /\b(?:if|else|for|while|do|return|break|continue|switch|case|default|const|constexpr|static|struct|template|typename|class|using|namespace|extern|inline|typedef|enum|sizeof|auto|true|false|asm|volatile|public|operator)\b/y],
  ["type", /\b(?:void|bool|char|short|int|long|float|double|unsigned|signed|bf16|f16|f8e4m3|f8e5m2|[iu](?:1|8|16|32|64)|f32|half|uint4|float4|int4)\b/y],
  ["call", /\b[A-Za-z_]\w*(?=\s*\()/y],
  ["", /[A-Za-z_]\w*|\s+|[^\sA-Za-z_]/y],
];

const irTokens = [
  ["comment", /\/\/[^\n]*/y],
  ["string", /"(?:[^"\\\n]|\\.)*"/y],
  ["value", /%(?:"(?:[^"\\]|\\.)*"|[\w.$-]+)/y],
  ["stored", /@(?:"(?:[^"\\]|\\.)*"|[\w.$-]+)/y],
  ["type", /\b(?:f32|f64|bf16|f16|f8e4m3|f8e5m2|[iu](?:1|8|16|32|64))\b(?:\[[^\]\n]*\])?/y],
  ["call", /\b[a-z]\w*(?=[ (][%@(])/y],
  ["keyword", /\b(?:fusion|yield|return|func|true|false)\b/y],
  ["number", /-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/y],
  ["", /[A-Za-z_]\w*|\s+|[^\sA-Za-z_]/y],
];

/** `text` in spans, as a fragment; plain text is merged. */
function highlighted(text, tokens) {
  const out = document.createDocumentFragment();
  let plain = "";
  const flush = () => { if (plain) out.append(plain); plain = ""; };
  for (let at = 0; at < text.length;) {
    let taken = false;
    for (const [name, pattern] of tokens) {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (!match || match[0] === "") continue;
      if (name) { flush(); out.append(h("span", {class: "t-" + name}, match[0])); } else plain += match[0];
      at += match[0].length;
      taken = true;
      break;
    }
    if (!taken) plain += text[at++];
  }
  flush();
  return out;
}

const code = (text, tokens, attributes) => h("pre", {class: "code", tabindex: "0", ...attributes}, highlighted(text, tokens));
