import { createServer } from 'node:http';
import { listenOnFreePort } from './free-port.ts';

export interface RecordingServer {
  readonly url: string;
  readonly listRequests: () => readonly string[];
  close(): Promise<void>;
}

export async function startRecordingServer(): Promise<RecordingServer> {
  const recordedRequests: string[] = [];
  const server = createServer((request, response) => {
    recordedRequests.push(`${request.method} ${request.url}`);
    response.end();
  });
  return {
    url: `http://127.0.0.1:${await listenOnFreePort(server)}`,
    listRequests: () => recordedRequests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function createHostileTexts(otherServerUrl: string): readonly string[] {
  return [
    `<script>alert('script')</script>`,
    `"><img src=x onerror="alert('image')">`,
    `</title></style></textarea><svg onload=alert('svg')>`,
    `javascript:alert('address')`,
    `{{constructor.constructor('alert("template")')()}} \${alert('template')}`,
    `<meta http-equiv=refresh content="0;url=${otherServerUrl}/meta">`,
    `<base href="${otherServerUrl}/"><style>@import "${otherServerUrl}/style";*{display:none!important}</style>`,
    '\u202Etxt.exe\u202C %00&lt;script&gt; \u202E',
  ];
}

export function createHostileHtml(otherServerUrl: string): string {
  return `<!doctype html><html><head>
<meta http-equiv="refresh" content="0;url=${otherServerUrl}/refresh">
<meta http-equiv="Content-Security-Policy" content="default-src * 'unsafe-inline'">
<base href="${otherServerUrl}/" target="_top">
<link rel="stylesheet" href="${otherServerUrl}/sheet.css"><link rel="preload" as="image" href="${otherServerUrl}/preload">
<link rel="dns-prefetch" href="${otherServerUrl}"><link rel="prefetch" href="${otherServerUrl}/prefetch">
<style>@import "${otherServerUrl}/import.css"; @font-face { font-family: f; src: url(${otherServerUrl}/font) }
body { background: url(${otherServerUrl}/background); font-family: f } body { position: fixed; inset: 0; z-index: 99999 }</style>
<script>alert('head')</script><script src="${otherServerUrl}/script.js"></script></head>
<body onload="alert('load')">
<p>A hostile message</p>
<img src="${otherServerUrl}/pixel.gif" onerror="alert('image')"><img srcset="${otherServerUrl}/srcset 1x" src=x onerror=alert(1)>
<svg onload="alert('svg')"><script>alert('svg script')</script><image href="${otherServerUrl}/svg" /></svg>
<iframe src="${otherServerUrl}/frame"></iframe><iframe srcdoc="<script>parent.alert('srcdoc')</script>"></iframe>
<object data="${otherServerUrl}/object"></object><embed src="${otherServerUrl}/embed"><video autoplay src="${otherServerUrl}/video"></video>
<a href="javascript:alert('link')">a script link</a>
<a href="java&#10;script:alert('broken link')">a broken script link</a>
<a href="data:text/html,<script>alert('data')</script>" target="_blank">a data link</a>
<a href="${otherServerUrl}/top" target="_top">a link out</a>
<a href="${otherServerUrl}/window" target="_blank">a link to a window</a>
<a href="${otherServerUrl}/self" target="_self">a link in its place</a>
<form action="${otherServerUrl}/form" method="post" target="_top"><input name="password"><button autofocus>a form</button></form>
<math><mtext><table><mglyph><style><img src=x onerror="alert('mutation')"></style></mglyph></table></mtext></math>
<noscript><img src="${otherServerUrl}/noscript"></noscript>
</iframe></body></html>`;
}
