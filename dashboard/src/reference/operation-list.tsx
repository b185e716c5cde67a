/**
 * A list of operations, or of webhooks, with a search field. A click on an operation shows the input, the results and
 * the errors of the operation. A click on a webhook shows the headers and the members of the request.
 */
import { IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { useUrlState } from '../api/url-state';
import { Copyable } from '../parts/copyable';
import { FilterBox } from '../parts/filter-box';
import { KeyHints } from '../parts/key-hint';
import { formatCount } from '../parts/number';
import { EmptyState } from '../parts/page-states';
import { TextWithCode } from '../parts/text-with-code';
import { useRowKeys } from '../parts/use-row-keys';
import { type ApiDocument, FIELD_DEPTH, listFields, type ReferenceOperation } from './document';
import { FieldTable } from './field-table';

interface OperationListProps {
  readonly document: ApiDocument;
  readonly operations: readonly ReferenceOperation[];
  readonly noun: 'operation' | 'webhook';
}

export function OperationList({ document, operations: allOperations, noun }: OperationListProps) {
  const [urlState, setUrlState] = useUrlState();
  const [openIds, setOpenIds] = useState<ReadonlySet<string>>(new Set());
  const filterText = urlState.get('q') ?? '';
  const words = filterText.trim().toLowerCase().split(/\s+/);
  const operations = allOperations.filter(({ id, group, method, path, summary }) => {
    const searchedText = `${id} ${group} ${method} ${path} ${summary}`.toLowerCase();
    return words.every((word) => searchedText.includes(word));
  });
  const toggleOperation = (id: string) =>
    setOpenIds((ids) => new Set(ids.has(id) ? [...ids].filter((otherId) => otherId !== id) : [...ids, id]));
  const currentId = useRowKeys({ ids: operations.map(({ id }) => id), onOpen: toggleOperation });
  const groups = [...new Set(operations.map(({ group }) => group))];
  return (
    <>
      <search aria-label={`All ${noun}s`} className="filters">
        <FilterBox
          label={`Filter ${noun}s`}
          placeholder="Filter by method, path or words"
          value={filterText}
          onChange={(q) => setUrlState({ q }, true)}
          isInline
        />
        <span className="filter-count" role="status">
          {operations.length === allOperations.length
            ? formatCount(allOperations.length, noun)
            : `${operations.length} of ${formatCount(allOperations.length, noun)}`}
        </span>
        <KeyHints openLabel="open" />
      </search>
      {operations.length === 0 ? <EmptyState title={`No ${noun} matches`} /> : null}
      <div className="stack">
        {groups.map((group) => (
          <section key={group} className="card flush" aria-labelledby={`group-${group}`}>
            <div className="card-header">
              <h2 id={`group-${group}`}>{group}</h2>
            </div>
            <ul className="plain operations">
              {operations
                .filter((operation) => operation.group === group)
                .map((operation) => (
                  <Operation
                    key={operation.id}
                    document={document}
                    operation={operation}
                    isOpen={openIds.has(operation.id)}
                    isCurrent={currentId === operation.id}
                    onToggle={() => toggleOperation(operation.id)}
                  />
                ))}
            </ul>
          </section>
        ))}
      </div>
    </>
  );
}

interface OperationProps {
  readonly document: ApiDocument;
  readonly operation: ReferenceOperation;
  readonly isOpen: boolean;
  readonly isCurrent: boolean;
  readonly onToggle: () => void;
}

function Operation({ document, operation, isOpen, isCurrent, onToggle }: OperationProps) {
  const { id, method, path, summary } = operation;
  return (
    <li data-row={id} tabIndex={-1} {...(isCurrent ? { 'aria-current': true, 'data-current': true } : {})}>
      <button type="button" className="operation" aria-expanded={isOpen} onClick={onToggle}>
        <IconChevronRight size={16} stroke={1.8} aria-hidden className="operation-mark" />
        <span className="method" data-method={method}>
          {method}
        </span>
        <span className="two-lines">
          <code className="wrap">{path}</code>
          <span>{summary}</span>
        </span>
      </button>
      {isOpen ? <OperationDetails document={document} operation={operation} /> : null}
    </li>
  );
}

function OperationDetails({ document, operation }: Pick<OperationProps, 'document' | 'operation'>) {
  const { id, path, notes, inputs, results, errors } = operation;
  // A webhook has no path on this service, and the endpoint determines the response.
  const isWebhook = !path.startsWith('/');
  return (
    <div className="operation-details">
      {notes === '' ? null : (
        <p>
          <TextWithCode text={notes} />
        </p>
      )}
      {isWebhook ? null : <Copyable value={createCurlCommand(operation)} label={`the command of ${id}`} block />}
      <h3>{isWebhook ? 'Request' : 'Input'}</h3>
      {inputs.length === 0 ? (
        <p className="muted">The operation has no input.</p>
      ) : (
        <FieldTable
          label={isWebhook ? `Request of ${path}` : `Input of ${id}`}
          fields={inputs}
          getLocation={(field) => inputs.find((input) => input === field)?.location ?? ''}
        />
      )}
      {isWebhook ? null : <Results document={document} id={id} results={results} />}
      {isWebhook ? null : <Errors id={id} errors={errors} />}
    </div>
  );
}

function Results({
  document,
  id,
  results,
}: Pick<ReferenceOperation, 'id' | 'results'> & { readonly document: ApiDocument }) {
  return results.map(({ status, mediaType, schema }) => {
    const fields = listFields(document, schema, FIELD_DEPTH);
    return (
      <div key={`${status} ${mediaType}`}>
        <h3>
          Result <span className="muted">{`status ${status}, ${mediaType}`}</span>
        </h3>
        {fields.length === 0 ? null : <FieldTable label={`Result of ${id}, ${mediaType}`} fields={fields} />}
      </div>
    );
  });
}

function Errors({ id, errors }: Pick<ReferenceOperation, 'id' | 'errors'>) {
  return (
    <>
      <h3>Errors</h3>
      <table className="list fields errors">
        <caption className="unseen">{`Errors of ${id}`}</caption>
        <tbody>
          {errors.map(({ status, description }) => (
            <tr key={status}>
              <th scope="row">{status}</th>
              <td className="fill">
                <TextWithCode text={description} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Returns a curl command with a placeholder in upper case for each required value. */
function createCurlCommand({ method, path, inputs, bodyType }: ReferenceOperation): string {
  const requiredInputs = inputs.filter(({ isRequired }) => isRequired);
  const query = requiredInputs
    .filter(({ location }) => location === 'query')
    .map(({ name }) => `${name}=${name.toUpperCase()}`)
    .join('&');
  const url = `${window.location.origin}${path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => name.toUpperCase())}`;
  const members = requiredInputs
    .filter(({ location }) => location === 'body')
    .map(({ name }) => [name, name.toUpperCase()]);
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}'${url}${query === '' ? '' : `?${query}`}'`,
    `  -H "Authorization: Bearer $TOKEN"`,
    ...(bodyType === null ? [] : [`  -H 'Content-Type: ${bodyType}'`]),
    ...(bodyType === 'application/json' ? [`  -d '${JSON.stringify(Object.fromEntries(members))}'`] : []),
    ...(bodyType !== null && bodyType !== 'application/json' ? ['  --data-binary @FILE'] : []),
  ].join(' \\\n');
}
