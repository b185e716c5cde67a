import { type Answer, sendRequest } from '../scenarios/running-service.ts';

export function readCurlArguments(text: string): readonly string[] {
  const command = text.slice(text.indexOf('curl -i')).replaceAll('\\\n', ' ').split('\n')[0] ?? '';
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map((argument) => argument[1] ?? argument[2] ?? '');
}

/** Sends the request of the command. @throws Error on an unknown option */
export function runCurl(text: string): Promise<Answer> {
  const [program, ...curlArguments] = readCurlArguments(text);
  if (program !== 'curl') throw new Error(`not a curl command: ${text}`);
  const headers = new Headers();
  let [url, body] = ['', ''];
  for (let position = 0; position < curlArguments.length; position += 1) {
    const argument = curlArguments[position] ?? '';
    const nextArgument = curlArguments[position + 1] ?? '';
    if (argument === '-i') continue;
    else if (argument === '-H')
      headers.append(
        nextArgument.slice(0, nextArgument.indexOf(':')),
        nextArgument.slice(nextArgument.indexOf(':') + 1).trim(),
      );
    else if (argument === '-d') body = nextArgument;
    else if (argument.startsWith('http://')) {
      url = argument;
      continue;
    } else throw new Error(`unknown option of curl: ${argument}`);
    position += 1;
  }
  return sendRequest(url, { method: 'POST', headers, body });
}
