"""Two hundred cities, a list as a program would give it to `select`."""

CITIES = """
Tokyo, Delhi, Shanghai, São Paulo, Mexico City, Cairo, Mumbai, Beijing, Dhaka, Osaka, New York, Karachi, Buenos Aires,
Chongqing, Istanbul, Kolkata, Manila, Lagos, Rio de Janeiro, Tianjin, Kinshasa, Guangzhou, Los Angeles, Moscow,
Shenzhen, Lahore, Bangalore, Paris, Bogotá, Jakarta, Chennai, Lima, Bangkok, Seoul, Nagoya, Hyderabad, London, Tehran,
Chicago, Chengdu, Nanjing, Wuhan, Ho Chi Minh City, Luanda, Ahmedabad, Kuala Lumpur, Xi'an, Hong Kong, Dongguan,
Hangzhou, Foshan, Shenyang, Riyadh, Baghdad, Santiago, Surat, Madrid, Suzhou, Pune, Harbin, Houston, Dallas, Toronto,
Dar es Salaam, Miami, Belo Horizonte, Singapore, Philadelphia, Atlanta, Fukuoka, Khartoum, Barcelona, Johannesburg,
Saint Petersburg, Qingdao, Dalian, Washington, Yangon, Alexandria, Jinan, Guadalajara, Boston, Phoenix, Detroit,
Montreal, San Francisco, San Diego, San Antonio, San José, San Juan, Santo Domingo, Seattle, Portland, Denver, Austin,
Nashville, Memphis, Baltimore, Milwaukee, Las Vegas, New Orleans, Cleveland, Pittsburgh, Vancouver, Calgary, Ottawa,
Edmonton, Quebec City, Winnipeg, Berlin, Hamburg, Munich, Cologne, Frankfurt, Stuttgart, Düsseldorf, Leipzig, Dresden,
Vienna, Graz, Zürich, Geneva, Basel, Bern, Rome, Milan, Naples, Turin, Palermo, Genoa, Bologna, Florence, Venice,
Verona, Valencia, Seville, Málaga, Bilbao, Lisbon, Porto, Lyon, Marseille, Toulouse, Nice, Nantes, Strasbourg, Lille,
Bordeaux, Brussels, Antwerp, Ghent, Amsterdam, Rotterdam, The Hague, Utrecht, Copenhagen, Aarhus, Oslo, Bergen,
Stockholm, Gothenburg, Malmö, Helsinki, Tallinn, Riga, Vilnius, Warsaw, Kraków, Gdańsk, Wrocław, Prague, Brno,
Bratislava, Budapest, Bucharest, Sofia, Belgrade, Zagreb, Ljubljana, Sarajevo, Athens, Thessaloniki, Kyiv, Lviv, Odesa,
Dublin, Cork, Edinburgh, Glasgow, Manchester, Birmingham, Liverpool, Leeds, Bristol, Sheffield, Reykjavík, Newcastle,
Newport, Cardiff, Belfast, Aberdeen, Limerick
"""

NAMES = [name.strip() for name in CITIES.replace("\n", " ").split(",")]
