/** Documents the only operation of the public interface: fields, headers, example programs and errors. */
import { Code, ScrollArea, Tabs } from '@mantine/core';
import { SEND_MAIL_PATH } from '../../../src/model/outcome.ts';
import { useUrlState } from '../api/url-state';
import { Card } from '../parts/card';
import { Copyable } from '../parts/copyable';
import { TextWithCode } from '../parts/text-with-code';
import { CODE_EXAMPLES } from './code-examples';
import {
  type ApiDocument,
  listFields,
  listHeaders,
  listOperations,
  listPublicErrors,
  listRequestHeaders,
} from './document';
import { FieldTable } from './field-table';

interface PublicInterfaceProps {
  readonly document: ApiDocument;
  /** The URL of the public listener; null if this node has no public listener. */
  readonly publicUrl: string | null;
}

export function PublicInterface({ document, publicUrl }: PublicInterfaceProps) {
  const operation = listOperations(document).find(({ path }) => path === SEND_MAIL_PATH);
  if (operation === undefined) return null;
  const { method, path, summary, notes, results } = operation;
  const inputs = [...listRequestHeaders(document, operation), ...operation.inputs];
  return (
    <div className="stack">
      <Card title={summary} secondary={`version ${document.info.version}`} flush>
        <div className="card-text">
          <div className="endpoint">
            <span className="method">{method}</span>
            <code className="wrap">{`${publicUrl ?? ''}${path}`}</code>
          </div>
          <p>{notes}</p>
        </div>
        <FieldTable
          label="Fields and headers of the request"
          fields={inputs}
          getLocation={(field) => inputs.find((input) => input === field)?.location ?? 'body'}
        />
      </Card>
      <Card title="Response" secondary={`status ${results[0]?.status ?? ''}`} flush>
        <FieldTable
          label="Fields of the response"
          fields={results.flatMap(({ schema }) => listFields(document, schema, 3))}
        />
      </Card>
      <CodeExamples publicUrl={publicUrl} />
      <Errors document={document} />
      <Card title="Headers of responses" flush>
        <table className="list fields">
          <caption className="unseen">Headers of responses</caption>
          <thead>
            <tr>
              <th scope="col">Header</th>
              <th scope="col">Description</th>
            </tr>
          </thead>
          <tbody>
            {listHeaders(document).map(([name, description]) => (
              <tr key={name}>
                <td>
                  <code>{name}</code>
                </td>
                <td className="fill wrap">{description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
    </div>
  );
}

function CodeExamples({ publicUrl }: { readonly publicUrl: string | null }) {
  const [urlState, setUrlState] = useUrlState();
  const selectedExample =
    CODE_EXAMPLES.find((example) => example.language === urlState.get('language')) ?? CODE_EXAMPLES[0];
  return (
    <Card title="Programs" secondary="with repetitions and an idempotency key" flush>
      <Tabs
        value={selectedExample?.language ?? ''}
        onChange={(value) => setUrlState({ language: value }, true)}
        keepMounted={false}
      >
        <Tabs.List aria-label="Language">
          {CODE_EXAMPLES.map((example) => (
            <Tabs.Tab key={example.language} value={example.language}>
              {example.language}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {CODE_EXAMPLES.map(({ language: name, name: file, code }) => (
          <Tabs.Panel key={name} value={name} p="md">
            <p className="program-note">
              <Code>{file}</Code> reads the API key from <Code>POSTRIDER_API_KEY</Code>
              {file.includes('.') ? (
                <>
                  {' '}
                  and the address of the service from <Code>MAIL_API_URL</Code>
                  {publicUrl === null || publicUrl.startsWith('unix:') ? null : (
                    <>
                      , such as <Code>{publicUrl}</Code>
                    </>
                  )}
                </>
              ) : null}
              .
            </p>
            <ScrollArea.Autosize mah="26rem" viewportProps={{ tabIndex: 0, 'aria-label': `The program ${file}` }}>
              <Copyable value={code.trimEnd()} label={`the program ${file}`} block />
            </ScrollArea.Autosize>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Card>
  );
}

function Errors({ document }: { readonly document: ApiDocument }) {
  return (
    <Card title="Errors" secondary="of the operation, in the order of their status" flush>
      <table className="list fields errors">
        <caption className="unseen">Errors</caption>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Code and message</th>
            <th scope="col">Condition and remedy</th>
          </tr>
        </thead>
        <tbody>
          {listPublicErrors(document, SEND_MAIL_PATH).map(({ code, status, message, condition, remedy }) => (
            <tr key={code}>
              <td>{status}</td>
              <td className="fill">
                <div className="two-lines">
                  <code>{code}</code>
                  <span>{message}</span>
                </div>
              </td>
              <td className="fill wrap">
                <TextWithCode text={toSentence(condition)} />
                <div className="muted">
                  <TextWithCode text={toSentence(remedy)} />
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** Returns the text with an upper-case first letter and a full stop. */
export function toSentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
