/** A table of fields: name and type, description, limits. */
import { TextWithCode } from '../parts/text-with-code';
import type { Field } from './document';

interface FieldTableProps {
  readonly label: string;
  readonly fields: readonly Field[];
  /** Returns the location of an input field, such as `query`. Absent for a table of result fields. */
  readonly getLocation?: (field: Field) => string;
}

export function FieldTable({ label, fields, getLocation }: FieldTableProps) {
  const isInput = getLocation !== undefined;
  return (
    <table className="list fields">
      <caption className="unseen">{label}</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Description</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={`${getLocation?.(field) ?? ''} ${field.name}`}>
            <td>
              <div className="two-lines">
                <code>{field.name}</code>
                <span>
                  {field.type}
                  {isInput ? (field.isRequired ? ', required' : '') : field.isRequired ? '' : ', may be absent'}
                  {getLocation === undefined ? '' : `, in the ${getLocation(field)}`}
                </span>
              </div>
            </td>
            <td className="fill wrap">
              <TextWithCode text={field.description} />
              {field.limits.length === 0 ? null : <div className="muted">{capitalize(field.limits.join(', '))}.</div>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
