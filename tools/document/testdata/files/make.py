"""Writes the files of this folder with programs that others have written.

pip install python-docx==1.2.0 openpyxl==3.1.5 python-pptx==1.0.2 reportlab==4.4.4
"""

import datetime
import docx
import openpyxl
import pptx
from pptx.util import Inches
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas

d = docx.Document()
d.core_properties.title = "Halden Observatory"
d.add_heading("Halden Observatory", 0)
d.add_heading("The Lantern", 1)
p = d.add_paragraph("Its largest telescope is called ")
p.add_run("the Lantern").bold = True
p.add_run(".")
for text in ("a mirror of 2.1 metres", "ground by Ilse Marrow"):
    d.add_paragraph(text, style="List Bullet")
t = d.add_table(rows=1, cols=2)
t.rows[0].cells[0].text, t.rows[0].cells[1].text = "Year", "Comet"
cells = t.add_row().cells
cells[0].text, cells[1].text = "1947", "Voss"
d.save("python-docx.docx")

b = openpyxl.Workbook()
s = b.active
s.title = "Comets"
s.append(["Name", "Seen", "Share", "Minutes"])
s.append(["Voss", datetime.date(1947, 3, 14), 0.25, datetime.time(6, 30)])
s.append(["Ålund", datetime.datetime(2008, 3, 14, 21, 15), 1 / 3, datetime.timedelta(hours=30)])
s["C2"].number_format = "0.0%"
b.create_sheet("Notes").append(["a | b", "two\nlines"])
b.save("openpyxl.xlsx")

v = pptx.Presentation()
v.core_properties.title = "Comets"
one = v.slides.add_slide(v.slide_layouts[1])
one.shapes.title.text = "Comet Voss"
one.placeholders[1].text = "It comes back every 61 years."
one.notes_slide.notes_text_frame.text = "Say who saw it."
two = v.slides.add_slide(v.slide_layouts[5])
two.shapes.title.text = "Years"
g = two.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
for i, text in enumerate(["Year", "Who", "1947", "Voss"]):
    g.cell(i // 2, i % 2).text = text
v.save("python-pptx.pptx")

c = canvas.Canvas("reportlab.pdf", pagesize=A4, invariant=1)
c.setTitle("The Lantern")
c.setFont("Helvetica", 12)
c.drawString(72, 760, "The Lantern is a telescope.")
c.drawString(72, 745, "Its mirror was ground in a herring shed.")
c.showPage()
c.drawString(72, 760, "A second page.")
c.save()
